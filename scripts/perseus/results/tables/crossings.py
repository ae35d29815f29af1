"""Make the table `crossings`: the ranges of the total demand, each with its cheapest servers."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from perseus.host.parquet import FLAG, REAL, TEXT, WHOLE
from perseus.results.fleets.break_even import (
    MAX_SERVERS,
    MIN_SERVERS,
    RELIABLE,
    STEPS,
    demand_ranges,
)
from perseus.results.fleets.columns import PROPORTION
from perseus.results.fleets.plans import HOURS_PER_MONTH
from perseus.results.records import Row
from perseus.results.schema import Schema, ascending, column, holds
from perseus.results.study_results import StudyResults

DESCRIPTION = (
    "The table states which servers are the cheapest at which demand. One row per group of models"
    " (as in the table break_even) and range of the total demand. A new range begins at a demand at"
    " which `cheapest` or `reliable` changes, or at which `probability_of_saving` becomes known or"
    " unknown."
)
TITLE = "Which servers are the cheapest at which demand"
NOTE = (
    "The table shows the cheapest whole servers for each range of demand, at on-demand prices."
    f" Perseus compares the costs at {STEPS} demands, each larger than the previous demand by the"
    " same factor. If two successive demands have different cheapest servers, Perseus also compares"
    " the costs at demands between the two."
    f" The highest demand fills {MAX_SERVERS} dedicated servers. The lowest demand is the lower of"
    f" two rates: one request per second, and {MIN_SERVERS:.0%} of the capacity of a dedicated"
    " server. Each fleet has servers of one type, and Perseus assumes that each server carries only"
    " the lower limit of its capacity. The table names shared servers only if they are cheaper than"
    " dedicated servers. A saving is reliable if shared servers are cheaper (1) at the lower limits"
    " of the capacities, (2) at the estimated capacities, and (3) in at least"
    f" {RELIABLE:.0%} of the random draws of the capacities. The share of the draws is unknown if"
    " too many combinations of servers are possible, or if the capacity of a shared server has no"
    " upper limit. Perseus then tests only the first two conditions. If the capacity of a"
    " dedicated server has no upper limit, no saving is reliable. 'Saving from' and 'to' are the"
    " lowest and the highest saving in the range, relative to the cheapest dedicated servers for"
    " the same demand. P(saving > 0) is the lowest probability of a saving in the range."
)
SHOWN = {
    "models": "models",
    "proportion": "proportion",
    "from (requests/s)": "from_rps",
    "to": "to_rps",
    "the cheapest": "cheapest",
    "reliable": "reliable",
    "servers from": "from_servers",
    "to ": "to_servers",
    "USD per month from": "from_usd_per_month",
    "to  ": "to_usd_per_month",
    "saving from": "least_saving",
    "to   ": "most_saving",
    "P(saving > 0)": "probability_of_saving",
}
SCHEMA = Schema(
    [
        column("study", TEXT, "", "name of the study"),
        column("models", TEXT, "", "names of the models of the group"),
        column("proportion", TEXT, "", "share of each model in the total demand"),
        column("from_rps", REAL, "requests/s",
            "lowest total demand of the range, in requests of one image",
               null=False),
        column("to_rps", REAL, "requests/s",
            "highest total demand of the range, in requests of one image",
               null=False),
        column("cheapest", TEXT, "",
            "cheapest servers in the range: their type, and whether they may be shared, such as"
            " 'cpu1, dedicated' or 'cpu1, sharing allowed'"),
        column("server", TEXT, "",
            "type of the cheapest servers, by its name in the configuration"),
        column("shared", FLAG, "", "true if some of the cheapest servers are shared servers"),
        column("reliable", FLAG, "",
            "true if the choice of the cheapest servers is reliable. The choice is always reliable"
            " if dedicated servers are the cheapest or not available. If shared servers are the"
            " cheapest, they must be cheaper than dedicated servers (1) at the lower limits of the"
            " capacities, (2) at the estimates of the capacities, and (3) with a probability of at"
            f" least {RELIABLE:.0%}. If the probability is unknown (too many combinations of"
            " servers are possible, or the capacity of a shared server has no upper limit),"
            " conditions 1 and 2 are enough. If the capacity of a dedicated server has no upper"
            " limit, the choice of shared servers is not reliable"
            " (docs/explanation/repeats.md)."),
        column("from_servers", WHOLE, "servers",
            "number of servers to buy at the lowest demand of the range", least=1),
        column("to_servers", WHOLE, "servers",
            "number of servers to buy at the highest demand of the range", least=1),
        column("from_usd_per_month", REAL, "USD",
            "on-demand price of the servers in the column `from_servers` for"
            f" {HOURS_PER_MONTH} hours", null=False),
        column("to_usd_per_month", REAL, "USD",
            "on-demand price of the servers in the column `to_servers` for"
            f" {HOURS_PER_MONTH} hours", null=False),
        column("least_saving", REAL, "share",
            "lowest saving in the range, relative to the cost of the cheapest dedicated servers."
            " Perseus computes two savings at each demand of the range: from the lower limits and"
            " from the estimates of the capacities. Null if no dedicated servers are"
            " available.", least=-inf),
        column("most_saving", REAL, "share",
            "highest saving in the range, computed in the same way as `least_saving`", least=-inf),
        column("probability_of_saving", REAL, "",
            "lowest probability in the range that shared servers cost less than dedicated servers,"
            " as in the table break_even. Null if unknown.", least=0, most=1),
    ],
    key=("models", "from_rps"),
    holds=[
        PROPORTION,
        ascending("from_rps", "to_rps"),
        ascending("from_servers", "to_servers"),
        ascending("least_saving", "most_saving"),
        holds(
            "if shared servers are the cheapest, `most_saving` is above 0",
            lambda shared, most_saving: ~(shared & (most_saving <= 0)),
        ),
        holds(
            "if shared servers are the cheapest and `reliable` is true, `least_saving` is above 0",
            lambda shared, reliable, least_saving: ~(shared & reliable & (least_saving <= 0)),
        ),
        holds(
            "if shared servers are the cheapest and `reliable` is true, `probability_of_saving` is"
            f" at least {RELIABLE:g} or null",
            lambda shared, reliable, probability_of_saving: (
                ~(shared & reliable & (probability_of_saving < RELIABLE))
            ),
        ),
        holds(
            "if dedicated servers are the cheapest, `reliable` is"
            " true", lambda shared, reliable: shared | reliable),
    ],
)  # fmt: skip


def rows(results: StudyResults) -> Iterator[Row]:
    for demand_range in demand_ranges(results.costs_over_demand):
        yield {
            "study": results.task.study,
            "models": " + ".join(demand_range.first.question.models),
            "proportion": demand_range.first.question.description,
            "from_rps": demand_range.first.total_rps,
            "to_rps": demand_range.last.total_rps,
            "cheapest": demand_range.option.description,
            "server": demand_range.option.server,
            "shared": demand_range.option.shared,
            "reliable": demand_range.is_reliable,
            "from_servers": demand_range.first.servers,
            "to_servers": demand_range.last.servers,
            "from_usd_per_month": demand_range.first.usd_per_hour * HOURS_PER_MONTH,
            "to_usd_per_month": demand_range.last.usd_per_hour * HOURS_PER_MONTH,
            "least_saving": demand_range.least_saving,
            "most_saving": demand_range.most_saving,
            "probability_of_saving": demand_range.least_probability,
        }
