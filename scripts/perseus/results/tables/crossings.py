"""Make the table `crossings`: the cheapest servers for each range of demand."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from perseus.host.parquet import FLAG, REAL, TEXT, WHOLE
from perseus.results.fleets.break_even import (
    MAX_SERVERS,
    MIN_SERVERS,
    RELIABLE,
    STEPS,
    stretches,
)
from perseus.results.fleets.columns import PROPORTION
from perseus.results.fleets.plans import HOURS_PER_MONTH
from perseus.results.records import Row
from perseus.results.schema import Schema, ascending, column, holds
from perseus.results.study_results import StudyResults

DESCRIPTION = (
    "One row per group of models and range of the demand. Within a range, the cheapest kind of"
    " servers and the column `reliable` do not change. The probability of a saving is known at all"
    " demands of a range or at none. The groups are those of the table break_even."
)
TITLE = "What is the cheapest at which demand"
NOTE = (
    "The table shows the cheapest whole servers for each range of demand, at on-demand prices."
    f" Perseus compares the costs at {STEPS} demands in equal ratios, and at more demands where the"
    f" cheapest servers change. The highest demand fills {MAX_SERVERS} dedicated servers. The"
    f" lowest demand is one request per second, or {MIN_SERVERS:.0%} of the capacity of a dedicated"
    " server if that rate is less. All servers are of one type, and planned with the lower limits"
    " of their capacities. The table names shared servers only if they are cheaper than dedicated"
    " servers. A saving is reliable if shared servers are also cheaper at the estimated capacities"
    f" and in at least {RELIABLE:.0%} of the random draws of the capacities. 'Saving' is the lowest"
    " and the highest saving in the range, relative to the cheapest dedicated servers for the same"
    " demand. P(saving > 0) is the lowest probability of a saving in the range."
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
        column("models", TEXT, "", "models of the demand"),
        column("proportion", TEXT, "", "share of each model in the total demand"),
        column("from_rps", REAL, "requests/s", "lowest demand of the range",
               null=False),
        column("to_rps", REAL, "requests/s", "highest demand of the range",
               null=False),
        column("cheapest", TEXT, "", "description of the cheapest servers in the range"),
        column("server", TEXT, "", "type of the cheapest servers"),
        column("shared", FLAG, "", "true if some of the cheapest servers are shared"),
        column("reliable", FLAG, "",
            "true if dedicated servers are the cheapest, or if the saving of shared servers is"
            " reliable. A saving is reliable if shared servers are also cheaper at the estimated"
            f" capacities, and if the probability of a saving is at least {RELIABLE:.0%} or"
            " unknown."),
        column("from_servers", WHOLE, "servers",
            "number of servers at the lowest demand of the range", least=1),
        column("to_servers", WHOLE, "servers",
            "number of servers at the highest demand of the range", least=1),
        column("from_usd_per_month", REAL, "USD",
            f"on-demand price of the servers for {HOURS_PER_MONTH} hours at the lowest demand of"
            " the range", null=False),
        column("to_usd_per_month", REAL, "USD",
            "on-demand price of the servers for a month at the highest demand of the"
            " range", null=False),
        column("least_saving", REAL, "share",
            "lowest saving in the range, relative to the cost of the cheapest dedicated servers."
            " Null without dedicated servers.", least=-inf),
        column("most_saving", REAL, "share",
            "highest saving in the range, relative to the cost of the cheapest dedicated"
            " servers", least=-inf),
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
            "if shared servers are the cheapest, their highest saving is above 0",
            lambda shared, most_saving: ~(shared & (most_saving <= 0)),
        ),
        holds(
            "if shared servers are the cheapest and the saving is reliable, the lowest saving is"
            " above 0",
            lambda shared, reliable, least_saving: ~(shared & reliable & (least_saving <= 0)),
        ),
        holds(
            "if shared servers are the cheapest and the saving is reliable, the probability of a"
            " saving is high or unknown",
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
    for stretch in stretches(results.costs_over_demand):
        yield {
            "study": results.task.study,
            "models": " + ".join(stretch.first.question.models),
            "proportion": stretch.first.question.description,
            "from_rps": stretch.first.total_rps,
            "to_rps": stretch.last.total_rps,
            "cheapest": stretch.option.description,
            "server": stretch.option.server,
            "shared": stretch.option.shared,
            "reliable": stretch.is_reliable,
            "from_servers": stretch.first.servers,
            "to_servers": stretch.last.servers,
            "from_usd_per_month": stretch.first.usd_per_hour * HOURS_PER_MONTH,
            "to_usd_per_month": stretch.last.usd_per_hour * HOURS_PER_MONTH,
            "least_saving": stretch.least_saving,
            "most_saving": stretch.most_saving,
            "probability_of_saving": stretch.least_probability,
        }
