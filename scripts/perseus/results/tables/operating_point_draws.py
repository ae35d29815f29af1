"""Make the table `operating_point_draws`: joint random draws of the capacity of one server, from
which Perseus computes the uncertainty of fleets."""

from __future__ import annotations

from collections.abc import Iterator

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.results.fleets.plans import RESAMPLES
from perseus.results.records import Row
from perseus.results.schema import Schema, column
from perseus.results.study_results import StudyResults

DESCRIPTION = (
    "One row per operating point (measured capacity of one server), model and joint random draw."
    " From these draws, Perseus computes the probabilities and intervals in the table fleets."
)
SCHEMA = Schema(
    [
        column("study", TEXT, "", "name of the study"),
        column("scenario", TEXT, "",
            "name of the scenario (a set of tenants on one server)"),
        column("load_line", TEXT, "", "name of the load line"),
        column("preset", TEXT, "",
            "name of the preset (amount of evidence), such as quick"),
        column("model", TEXT, "", "name of the model"),
        column("draw", WHOLE, "",
            "index of the random draw, starting at 0. All rates with the same index come from one"
            f" joint draw. The table has at most {RESAMPLES} draws."),
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
