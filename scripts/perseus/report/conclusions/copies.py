"""Conclusion: savings of sharing between copies of one model, on full servers."""

from __future__ import annotations

from collections.abc import Iterator

from perseus.report.conclusions.conclusion import Conclusion, Tables
from perseus.report.conclusions.sharing import of_scenarios


def conclusions(tables: Tables) -> Iterator[Conclusion]:
    """Yield one conclusion for each scenario whose tenants are copies of one model."""
    return of_scenarios(tables, copies=True)
