"""Fail a job of continuous integration if a comparison of two studies shows that a value became
worse."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perseus.results.compare.judge import NOT_COMPARABLE, WORSE
from perseus.results.compare.pairs import COST, OVERALL, PEAK
from perseus.results.scenario_names import in_several_scenarios, with_scenarios


class WorseError(ValueError):
    """Error: a new value is worse than the base value, or no value could be compared. The message
    lists the worse values, but no cost of a load line whose peak is worse."""


def gate(table: pd.DataFrame, summary: Path) -> None:
    """Raise WorseError if a value in a comparison became worse, if only the base study found a
    limit of the server, or if no value could be compared."""
    table = with_scenarios(table, in_several_scenarios(table[table["metric"] != OVERALL]))
    worse = table[table["verdict"] == WORSE].to_dict("records")
    peaks = {_load_line(row) for row in worse if row["metric"] == PEAK}
    rows = table[table["lost"] != ""].to_dict("records")
    # If the peak of a load line is worse, its cost is worse for the same reason.
    rows += [row for row in worse if row["metric"] != COST or _load_line(row) not in peaks]
    if rows:
        raise WorseError("\n".join([f"worse than the base ({summary}):", *map(_line, rows)]))
    if (table["verdict"] == NOT_COMPARABLE).all():
        raise WorseError(f"no value could be compared with the base: {summary}")


def _load_line(row: Mapping[Any, Any]) -> tuple[str, str, str]:
    return row["scenario"], row["load_line"], row["preset"]


def _line(row: Mapping[Any, Any]) -> str:
    parts = (row["server"], row["metric"], row["mix"], row["tenant"], row["pricing"])
    became = f"now {row['lost']}" if row["lost"] else f"{row['ratio']:.3g} times the base"
    return f"  - {' '.join(part for part in parts if part)}: {became}"
