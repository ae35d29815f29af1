"""Make the table `break_even`: the costs of servers of one type for a range of total demands, with
and without sharing."""

from __future__ import annotations

from collections.abc import Iterator

from perseus.host.parquet import FLAG, REAL, TEXT, WHOLE
from perseus.results.fleets.columns import PROPORTION
from perseus.results.records import Row
from perseus.results.schema import Schema, column
from perseus.results.study_results import StudyResults

DESCRIPTION = (
    "The table states how the cost of servers depends on the demand. One row per group of models,"
    " total demand, type of server, and value of `shared`: false (only dedicated servers) or true"
    " (dedicated and shared servers). If the study has a demand, the models of the demand together"
    " form the only group. Otherwise, the models of each shared scenario form a group, and each"
    " model with dedicated peaks on several servers forms a group of its own."
)
SCHEMA = Schema(
    [
        column("study", TEXT, "", "name of the study"),
        column("models", TEXT, "", "names of the models of the group"),
        column("proportion", TEXT, "",
            "share of each model in the total demand, such as a 76%, b 24%. If the study has no"
            " demand, Perseus chooses these shares such that each model needs the same number of"
            " dedicated servers."),
        column("total_rps", REAL, "requests/s",
            "total demand for all models together, in requests of one image", null=False),
        column("server", TEXT, "", "name of the type of server in the configuration"),
        column("shared", FLAG, "", "true if the servers may be shared"),
        column("servers", WHOLE, "servers",
            "number of whole servers that carry the demand. Perseus assumes that each server"
            " carries only the lower limit of its capacity.", least=1),
        column("usd_per_hour", REAL, "USD/h",
            "on-demand price per hour of all servers that the column `servers` counts", null=False),
        column("usd_at_estimates", REAL, "USD/h",
            "on-demand price per hour of the servers that would carry the demand if each server"
            " carried the estimate of its capacity", null=False),
        column("probability_of_saving", REAL, "",
            "probability that shared servers cost less than the cheapest dedicated servers, from"
            " joint random draws of the capacities. Null in four cases: (1) the row is for"
            " dedicated servers; (2) no dedicated servers are available; (3) too many combinations"
            " of servers are possible; (4) a capacity has no upper limit"
            " (docs/explanation/repeats.md).",
               least=0, most=1),
    ],
    key=("models", "total_rps", "server", "shared"),
    holds=[PROPORTION],
)  # fmt: skip


def rows(results: StudyResults) -> Iterator[Row]:
    for cost in results.costs_over_demand:
        yield {
            "study": results.task.study,
            "models": " + ".join(cost.question.models),
            "proportion": cost.question.description,
            "total_rps": cost.total_rps,
            "server": cost.option.server,
            "shared": cost.option.shared,
            "servers": cost.servers,
            "usd_per_hour": cost.usd_per_hour,
            "usd_at_estimates": cost.usd_at_estimates,
            "probability_of_saving": cost.probability_of_saving,
        }
