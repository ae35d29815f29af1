"""Make the table `operating_point_draws`: random draws of the capacity of one server. From these
draws, Perseus computes the uncertainty of fleets."""

from __future__ import annotations

from collections.abc import Iterator

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.results.columns import PRESET
from perseus.results.fleets.plans import RESAMPLES
from perseus.results.records import Row
from perseus.results.schema import Schema, column
from perseus.results.study_results import StudyResults

DESCRIPTION = (
    "The capacity of a server is known only from measurements. Random draws of the capacity express"
    " this uncertainty, and give the probabilities and intervals in the table fleets. One row per"
    " operating point (the rates that one server carries on a load line), model and draw."
)
SCHEMA = Schema(
    [
        column("study", TEXT, "", "name of the study"),
        column("scenario", TEXT, "",
            "name of the scenario (a set of tenants on one server)"),
        column("load_line", TEXT, "", "name of the load line"),
        column("preset", TEXT, "", PRESET),
        column("model", TEXT, "", "name of the model"),
        column("draw", WHOLE, "",
            "index of the random draw, starting at 0. The rates of all models and servers with the"
            " same index form one joint draw: use them together. The table has at most"
            f" {RESAMPLES} draws."),
        column("rps", REAL, "requests/s",
            "rate of the model that one server carries in this draw, in requests of one image",
               null=False),
    ],
    key=("scenario", "load_line", "preset", "model", "draw"),
)  # fmt: skip


def rows(results: StudyResults) -> Iterator[Row]:
    for point in results.operating_points:
        task = point.peak.task
        for model, draws_rps in point.draws_rps.items():
            if point.rates_rps[model] <= 0:
                continue
            for draw, rps in enumerate(draws_rps[:RESAMPLES]):
                yield {
                    "study": results.task.study,
                    "scenario": task.scenario,
                    "load_line": task.run.name,
                    "preset": task.preset,
                    "model": model,
                    "draw": draw,
                    "rps": float(rps),
                }
