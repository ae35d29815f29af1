"""Conclusion: the cheapest server for one model at each demand, if there are several options."""

from __future__ import annotations

from collections.abc import Iterator

from perseus.report.conclusions.conclusion import Conclusion, Tables
from perseus.report.conclusions.over_demand import Asked, all_questions, saves
from perseus.report.numbers import significant


def conclusions(tables: Tables) -> Iterator[Conclusion]:
    """Yield one conclusion for each model with a choice of servers."""
    for each in all_questions(tables):
        if len(each.models) == 1 and _is_choice(each):
            yield _conclusion(each, tables)


def _is_choice(asked: Asked) -> bool:
    """Return whether the model has a choice of servers. This means that several types of server
    carry the model, or that copies of the model save money on a shared server."""
    is_shared = any(map(saves, asked.demand_ranges))
    return is_shared or asked.points["server"].nunique() > 1


def _conclusion(asked: Asked, tables: Tables) -> Conclusion:
    (who,), sentences = asked.models, tuple(asked.sentences(tables))
    cheapest = {str(row["server"]) for row in asked.demand_ranges}
    if len(cheapest) > 1:
        headline = f"The cheapest server for {who} depends on the demand"
        return Conclusion("unclear", headline, sentences, asked.behind)
    headline = (
        f"The cheapest server for {who} is {cheapest.pop()} at every demand up to"
        f" {significant(asked.most_rps)} requests/s"
    )
    return Conclusion("yes", headline, sentences, asked.behind)
