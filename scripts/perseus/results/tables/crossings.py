"""Table `crossings`: between which demands which servers are the cheapest."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from perseus.host.parquet import FLAG, REAL, TEXT
from perseus.results.columns import PROPORTION
from perseus.results.fleets.break_even import MOST_SERVERS, stretches
from perseus.results.records import Row
from perseus.results.schema import Schema, ascending, column, holds
from perseus.results.study_results import StudyResults

DESCRIPTION = "One row per group of models as in break_even, and stretch of the demand."
TITLE = "What is the cheapest at which demand"
NOTE = (
    "From one request a second to what fills"
    f" {MOST_SERVERS} dedicated servers, whole servers at on-demand prices. Shared ones are named"
    " where they are cheaper both at the lower limits of what servers carry and at the estimates."
    " Saving: against the cheapest dedicated servers at the same demand, the least and the most of"
    " both."
)
SHOWN = {
    "models": "models",
    "proportion": "proportion",
    "from (requests/s)": "from_rps",
    "to": "to_rps",
    "the cheapest": "cheapest",
    "saving from": "least_saving",
    "to ": "most_saving",
}
SCHEMA = Schema(
    [
        column("study", TEXT, "", "name of the study"),
        column("models", TEXT, "", "models of the demand"),
        column("proportion", TEXT, "", "share of the demand that each of them has"),
        column("from_rps", REAL, "requests/s", "first demand that was looked at in the stretch",
               null=False),
        column("to_rps", REAL, "requests/s", "last demand that was looked at in the stretch",
               null=False),
        column("cheapest", TEXT, "", "the cheapest servers in it, in words"),
        column("server", TEXT, "", "their type"),
        column("shared", FLAG, "", "whether some are shared"),
        column("least_saving", REAL, "share", "against the cheapest dedicated servers, at least;"
               " null where there are none", least=-inf),
        column("most_saving", REAL, "share", "the same, at most", least=-inf),
    ],
    key=("models", "from_rps"),
    holds=[
        PROPORTION,
        ascending("from_rps", "to_rps"),
        ascending("least_saving", "most_saving"),
        holds(
            "what is shared saves something",
            lambda shared, least_saving: ~shared | (least_saving > 0),
        ),
    ],
)  # fmt: skip


def rows(results: StudyResults) -> Iterator[Row]:
    for stretch in stretches(results.costs_over_demand):
        yield {
            "study": results.task.study,
            "models": " + ".join(stretch.question.models),
            "proportion": stretch.question.words,
            "from_rps": stretch.from_rps,
            "to_rps": stretch.to_rps,
            "cheapest": stretch.option.words,
            "server": stretch.option.server,
            "shared": stretch.option.shared,
            "least_saving": stretch.least_saving,
            "most_saving": stretch.most_saving,
        }
