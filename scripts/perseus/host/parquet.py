"""Define table columns with unit and meaning, and write tables as Parquet and CSV."""

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
    """Return a table column whose metadata contains the unit ("" without a unit) and meaning."""
    return pa.field(name, kind, nullable, metadata={"unit": unit, "meaning": meaning})


def table(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Convert rows to a table with the columns of `schema`. NaN becomes null.

    Raises KeyError if the keys of a row are not exactly the names of the columns.
    """
    names = set(schema.names)
    for row in rows:
        if row.keys() != names:
            raise KeyError(f"missing or unknown columns: {sorted(row.keys() ^ names)}")
    # With from_pandas, NaN becomes null, which means unknown.
    columns = [
        pa.array([row[each.name] for row in rows], each.type, from_pandas=True) for each in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def write(made: pa.Table, parquet: Path, csv: Path) -> None:
    """Write the table as Parquet, and as CSV with six significant digits."""
    with whole(parquet) as partial:
        pq.write_table(made, partial)
    with whole(csv) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv_writer(file, lineterminator="\n")
        writer.writerow(made.schema.names)
        writer.writerows(zip(*map(_csv_values, made.columns), strict=True))


def _csv_values(of: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column for CSV. An unknown real number becomes an empty text."""
    if pa.types.is_floating(of.type):
        return ["" if value is None else f"{value:.6g}" for value in of.to_pylist()]
    return of.to_pylist()
