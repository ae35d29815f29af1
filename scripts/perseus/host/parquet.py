"""Columns with a unit and a meaning, and tables that are written as Parquet with a CSV twin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from csv import writer as csv_writer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from perseus.host.files import whole

TEXT, REAL, WHOLE, FLAG = pa.string(), pa.float64(), pa.int64(), pa.bool_()


def column(
    name: str, kind: pa.DataType, unit: str, meaning: str, *, nullable: bool = True
) -> pa.Field:
    """A column whose unit ("" for none) and meaning stand in the field's metadata."""
    return pa.field(name, kind, nullable, metadata={"unit": unit, "meaning": meaning})


def table(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows as a table; NaN becomes null. Raises KeyError when a row's keys are not the columns."""
    names = set(schema.names)
    for row in rows:
        if row.keys() != names:
            raise KeyError(f"columns {sorted(row.keys() ^ names)} are amiss")
    # As pandas means NaN: not known.
    columns = [
        pa.array([row[each.name] for row in rows], each.type, from_pandas=True) for each in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def write(made: pa.Table, parquet: Path, csv: Path) -> None:
    """The table as Parquet, and for people as CSV with six significant digits."""
    with whole(parquet) as partial:
        pq.write_table(made, partial)
    with whole(csv) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv_writer(file, lineterminator="\n")
        writer.writerow(made.schema.names)
        writer.writerows(zip(*map(_words, made.columns), strict=True))


def _words(of: pa.ChunkedArray) -> list[Any]:
    """A column's values as they stand in CSV: what is not known is empty."""
    if pa.types.is_floating(of.type):
        return ["" if value is None else f"{value:.6g}" for value in of.to_pylist()]
    return of.to_pylist()
