"""What copies of a model save on full servers, in words; they are there to predict other mixes."""

from __future__ import annotations

from collections.abc import Iterator

from perseus.report.answers.answer import Answer, Tables
from perseus.report.answers.sharing import of_scenarios


def answers(tables: Tables) -> Iterator[Answer]:
    """An answer per scenario whose tenants all have one model."""
    return of_scenarios(tables, copies=True)
