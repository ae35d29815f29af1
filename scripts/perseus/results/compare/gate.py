"""Stop with an error if a comparison of two studies shows a worse value, so that a job of
continuous integration fails."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from perseus.results.compare.judge import NOT_COMPARABLE, WORSE
from perseus.results.compare.pairs import COST, OVERALL, PEAK
from perseus.results.scenario_names import in_several_scenarios, with_scenarios


class WorseError(ValueError):
    """Error: a new value is worse than the base value, or no value could be compared.

    The message lists the worse values. If the peak of a load line is worse, the message does not
    list the cost of this load line.
    """


def gate(table: pd.DataFrame, summary: Path) -> None:
    """Raise WorseError if a value became worse, or if no value could be compared.

    A peak also counts as worse if the base study found a limit and, because of the server, the new
    study found none. `table` is the table of the comparison. The message names the file `summary`,
    which has the details.
    """
    table = with_scenarios(table, in_several_scenarios(table[table["metric"] != OVERALL]))
    worse = table[table["verdict"] == WORSE].to_dict("records")
    peaks = {_load_line(row) for row in worse if row["metric"] == PEAK}
    rows = table[table["lost"] != ""].to_dict("records")
    # If the peak of a load line is worse, its cost is worse for the same reason.
    rows += [row for row in worse if row["metric"] != COST or _load_line(row) not in peaks]
    if rows:
        raise WorseError("\n".join([f"worse than the base ({summary}):", *map(_line, rows)]))
    if (table["verdict"] == NOT_COMPARABLE).all():
        raise WorseError(f"no value could be compared with the base: see the reasons in {summary}")


def _load_line(row: Mapping[Any, Any]) -> tuple[str, str, str]:
    return row["scenario"], row["load_line"], row["preset"]


def _line(row: Mapping[Any, Any]) -> str:
    parts = (row["server"], row["metric"], row["mix"], row["tenant"], row["pricing"])
    became = f"now {row['lost']}" if row["lost"] else f"{row['ratio']:.3g} times the base"
    return f"  - {' '.join(part for part in parts if part)}: {became}"
