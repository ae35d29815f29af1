"""Check the section `costs`: the currency, its value in USD, and the date of the prices."""

from __future__ import annotations

import datetime

from perseus.study.definition import Definition
from perseus.study.problems import Problems


def problems(study: Definition) -> Problems:
    costs = study.costs
    worth = costs.usd_per_currency_unit
    if costs.currency != "USD" and worth is None:
        yield (
            ("costs", "usd_per_currency_unit"),
            f"is missing: `currency` is {costs.currency}, but the results are in USD (write the"
            f" value of 1 {costs.currency} in USD)",
        )
    if costs.currency == "USD" and worth not in (None, 1.0):
        yield ("costs", "usd_per_currency_unit"), "must be 1 or left out, since `currency` is USD"
    if costs.priced_on is not None:
        try:
            datetime.date.fromisoformat(costs.priced_on)
        except ValueError:
            yield ("costs", "priced_on"), f"there is no day {costs.priced_on}"
