"""Read a price list of any cloud: a CSV file with the columns of the catalogues of SkyPilot.

The columns may have any order, and Perseus ignores unknown columns. A row without an InstanceType
is the price of accelerators without a machine, as on GCP. Perseus skips empty lines and lines that
begin with #.
"""

from __future__ import annotations

import csv
import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from perseus.study.problems import ConfigError

NEEDED: Final = ("InstanceType", "Region", "Price")
MAX_LISTED: Final = 20
PRICES: Final = {"on_demand": "Price", "spot": "SpotPrice", "committed": "CommittedPrice"}
"""For each pricing, the column with the price. The columns CommittedPrice, Source and Date are
optional: the catalogues of SkyPilot do not have them."""
MISSING: Final = frozenset({"", "-", "na", "n/a", "#n/a", "nan", "null", "none"})
"""If a field for a number or a date contains one of these texts, in upper or lower case, Perseus
reads the field as empty."""


class ListedPrice(NamedTuple):
    """A row of the price list. A number that the row does not state is None.

    `line` is the number of the line in the file; the first line is 1. `prices` contains the price
    per hour for each pricing, in the currency of the file. `problem` says why the row is invalid,
    and is empty for a valid row.
    """

    line: int
    instance: str
    region: str
    zone: str
    accelerator: str
    accelerators: float | None
    vcpus: float | None
    prices: Mapping[str, float | None]
    source: str
    date: str | None
    problem: str = ""


@dataclass(frozen=True)
class PriceList:
    """All rows of a price list. `name` is the path of the file, for messages."""

    name: str
    rows: tuple[ListedPrice, ...]

    @cached_property
    def machines(self) -> Mapping[str, Sequence[ListedPrice]]:
        """The rows of each machine, by the name in the column InstanceType."""
        return _grouped((row.instance, row) for row in self.rows if row.instance)

    @cached_property
    def accelerators(self) -> Mapping[str, Sequence[ListedPrice]]:
        """The rows without an InstanceType, by the name in the column AcceleratorName. These rows
        contain the prices of accelerators without a machine."""
        return _grouped((row.accelerator, row) for row in self.rows if not row.instance)


def _grouped(pairs: Iterator[tuple[str, ListedPrice]]) -> Mapping[str, Sequence[ListedPrice]]:
    found: dict[str, list[ListedPrice]] = {}
    for key, row in pairs:
        found.setdefault(key, []).append(row)
    return found


def read_price_list(path: Path, name: str) -> PriceList:
    """Read all rows of a price list.

    If a number or a date in a row is invalid, the attribute `problem` of the row says so. Raises
    ConfigError, which lists all problems, if the file cannot be read, has too few columns, or
    contains rows with more or fewer fields than the header.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            rows_of_text = ([cell.strip() for cell in row] for row in reader)
            lines = [(reader.line_num, row) for row in rows_of_text if not _is_left_out(row)]
    except (OSError, ValueError, csv.Error) as error:
        why = getattr(error, "strerror", None) or "it is not a CSV file in UTF-8"
        hint = "`costs.prices` must be a CSV file with SkyPilot's columns"
        raise ConfigError([f"{name}: {why} ({hint})"]) from None
    columns = lines[0][1] if lines else []
    if missing := [column for column in NEEDED if column not in columns]:
        needed = ", ".join(NEEDED)
        raise ConfigError([f"{name}: has no column {', '.join(missing)} (it needs {needed})"])
    rows, problems = [], []
    for line, cells in lines[1:]:
        if len(cells) != len(columns):
            fields = f"has {len(cells)} fields, but the header has {len(columns)}"
            problems.append(f"{name} line {line}: {fields} (correct or delete the line)")
            continue
        rows.append(_row(line, dict(zip(columns, cells, strict=True)), name))
    if problems:
        more = len(problems) - MAX_LISTED
        problems[MAX_LISTED:] = [f"{name}: {more} more lines with this problem"] if more > 0 else []
        raise ConfigError(problems)
    return PriceList(name, tuple(rows))


def _is_left_out(cells: Sequence[str]) -> bool:
    return not any(cells) or cells[0].startswith("#")


def _row(line: int, cells: Mapping[str, str], name: str) -> ListedPrice:
    row = ListedPrice(
        line=line,
        instance=cells["InstanceType"],
        region=cells["Region"],
        zone=cells.get("AvailabilityZone", ""),
        accelerator=cells.get("AcceleratorName", ""),
        accelerators=None,
        vcpus=None,
        prices=dict.fromkeys(PRICES),
        source=cells.get("Source") or name,
        date=None,
    )
    try:
        return row._replace(
            accelerators=_number(cells, "AcceleratorCount"),
            vcpus=_number(cells, "vCPUs"),
            prices={pricing: _number(cells, column) for pricing, column in PRICES.items()},
            date=_date(cells.get("Date", "")),
        )
    except ValueError as error:
        return row._replace(problem=str(error))


def _number(cells: Mapping[str, str], column: str) -> float | None:
    """Return the number in the column `column` of a row; None if the number is missing or 0.

    Raises ValueError if the field contains no number, or a negative or infinite number.
    """
    text = cells.get(column, "")
    if text.lower() in MISSING:
        return None
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{column} {text!r} is not a number") from None
    if value < 0 or not math.isfinite(value):
        raise ValueError(f"{column} must not be {text}")
    return value or None


def _date(text: str) -> str | None:
    if text.lower() in MISSING:
        return None
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError(f"Date {text!r} is not a date such as 2026-09-01") from None
