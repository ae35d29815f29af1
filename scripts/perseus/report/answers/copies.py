"""Finding: savings of copies of one model on full servers, which are measured to predict mixes."""

from __future__ import annotations

from collections.abc import Iterator

from perseus.report.answers.answer import Answer, Tables
from perseus.report.answers.sharing import of_scenarios


def answers(tables: Tables) -> Iterator[Answer]:
    """One finding for each scenario whose tenants all have one model."""
    return of_scenarios(tables, copies=True)
