"""Make the table `other_costs`: the costs at other prices of the servers, for example in other
regions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from perseus.results.records import Row
from perseus.results.study_results import StudyResults
from perseus.results.tables import costs

DESCRIPTION = (
    "The table states the costs at other prices, for example in other regions (key `other_prices`"
    " of a server). One row per load line, kind of price and other price of the server. The columns"
    " are those of the table costs. The table is empty if no server has the key `other_prices`."
)
TITLE = "At other prices"
NOTE = (
    "The table shows the cost of inferences on the servers of the study, at the prices of other"
    " regions or instances (key `other_prices`). The cost is in USD per million inferences at the"
    " estimated limit, with 95 % intervals in brackets. 'Share' is the part of the instance that a"
    " server uses, and the cost contains only this part of the price of the instance. 'Valid on' is"
    " the day on which the price was valid, from the column Date of the price list or from the key"
    " costs.priced_on. The entry is empty if the day is unknown."
)
SHOWN = {
    "server": "server",
    "model or mix": "mix",
    "instance": "instance",
    "share": "share",
    "region": "region",
    "pricing": "pricing",
    "USD/h": "usd_per_hour",
    "cost": ("usd_per_million_inferences", "ci_low_usd", "ci_high_usd"),
    "valid on": "price_date",
    "source": "price_source",
    "doubts": "price_doubts",
}
SCHEMA = replace(costs.SCHEMA, key=())  # no key, since two other prices may differ in any column


def rows(results: StudyResults) -> Iterator[Row]:
    for peak in results.peaks.values():
        for price in results.task.other_prices.get(peak.task.server.name, ()):
            yield from costs.priced(peak, price, results)
