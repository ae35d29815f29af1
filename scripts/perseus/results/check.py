"""Check that the tables of a study keep the rules of their definitions, and do not contradict each
other."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pandera.pandas as pandera
import pyarrow as pa
import pyarrow.parquet as pq
from pandera.errors import SchemaError, SchemaErrorReason, SchemaErrors

from perseus.host import parquet
from perseus.host.orphans import temporary_folder
from perseus.host.parquet import FLAG, REAL, TEXT, WHOLE
from perseus.results.between_tables import Images, equations
from perseus.results.compare import table as compared
from perseus.results.schema import Column, Relation, Schema, close
from perseus.results.tables import TABLES, module_of

MAX_LISTED: Final = 5
"""For each broken rule, Perseus prints the messages of at most MAX_LISTED rows."""

_PANDAS: Final = {
    TEXT: pd.StringDtype(),
    REAL: pd.Float64Dtype(),
    WHOLE: pd.Int64Dtype(),
    FLAG: pd.BooleanDtype(),
}
"""For each type of a table column, a pandas type that allows nulls."""

OF_ROWS: Final = (
    SchemaErrorReason.SERIES_CONTAINS_NULLS,
    SchemaErrorReason.DUPLICATES,
    SchemaErrorReason.DATAFRAME_CHECK,
)
"""Codes of the errors that pandera reports for single rows. All other codes are for errors of whole
columns."""


class ContradictionError(ValueError):
    """Error: the tables of a study break their rules.

    `problems` has one line for each problem. `made_by` names the Snakemake rules that make the
    tables. The message says how to run these rules again.
    """

    def __init__(self, problems: list[str], made_by: str = "tables predictions") -> None:
        self.problems = tuple(problems)
        lines = "\n".join(f"  - {problem}" for problem in problems)
        super().__init__(
            f"The tables break their rules:\n{lines}\nMake the tables again: run your command with"
            f" --forcerun {made_by}. If the same lines appear again, this is a bug in Perseus:"
            " please report these lines."
        )


def check(folder: Path, images: Images) -> dict[str, Any]:
    """Check the tables in a folder, and return the content of checked.json: the rules that the
    tables keep, and the number of rows of each table.

    Raises ContradictionError with all problems if a table breaks a rule.
    """
    tables = {name: pq.read_table(folder / f"{name}.parquet") for name in TABLES}
    found = problems(tables, images)
    for name, table in tables.items():
        found += _first(f"{name}.csv", csv_problems(name, table, folder / f"{name}.csv"))
    if found:
        raise ContradictionError(found)
    between = (each.what for each in equations(_frames(tables), images))
    return {
        "rows": {name: table.num_rows for name, table in tables.items()},
        "holds": {name: [each.what for each in module_of(name).SCHEMA.holds] for name in tables},
        "holds_between": list(dict.fromkeys(between)),
    }


def check_comparison(table: pa.Table) -> None:
    """Check the table of a comparison of two studies.

    Raises ContradictionError with all problems if the table breaks a rule.
    """
    if found := of_table("comparison", compared.SCHEMA, table):
        raise ContradictionError(found, made_by="compare")


def problems(tables: Mapping[str, pa.Table], images: Images) -> list[str]:
    """Return a message for each row that breaks a rule of its table or contradicts another table,
    with at most MAX_LISTED rows per rule."""
    found = [
        line
        for name, table in tables.items()
        for line in of_table(name, module_of(name).SCHEMA, table)
    ]
    return found + between(tables, images)


def between(tables: Mapping[str, pa.Table], images: Images) -> list[str]:
    """Return a message for each value that contradicts another table.

    If a table lacks columns, or has two rows with the same key, the function compares no tables and
    the result is empty. `of_table` then reports the table.
    """
    if not all(_has_keys(name, table) for name, table in tables.items()):
        return []
    every = equations(_frames(tables), images)
    return [line for each in every for line in _first(each.what, each.violations())]


def _has_keys(name: str, table: pa.Table) -> bool:
    schema: Schema = module_of(name).SCHEMA
    if table.column_names != schema.names:
        return False
    return not schema.key or not table.select(schema.key).to_pandas().duplicated().any()


def _frames(tables: Mapping[str, pa.Table]) -> dict[str, pd.DataFrame]:
    return {name: table.to_pandas() for name, table in tables.items()}


def of_table(name: str, schema: Schema, table: pa.Table) -> list[str]:
    """Return a message for each row and each column that breaks a rule in the definition of its
    table."""
    if not table.num_rows and table.schema.equals(schema.arrow):
        return []  # pandera is slow even if the table is empty
    frame = table.to_pandas(types_mapper=_PANDAS.get)
    try:
        pandera_schema(schema).validate(frame, lazy=True)
    except SchemaErrors as errors:
        told = (_violations(name, frame, schema, each) for each in errors.schema_errors)
        return list(chain.from_iterable(told))
    return []


def pandera_schema(schema: Schema) -> pandera.DataFrameSchema:
    return pandera.DataFrameSchema(
        {
            each.name: pandera.Column(
                _PANDAS[each.kind],
                _of_column(each) if each.is_bounded else None,
                nullable=each.null,
            )
            for each in schema.columns
        },
        checks=[_of_rows(each) for each in schema.holds],
        unique=list(schema.key) or None,
        strict=True,
        ordered=True,
    )


def _of_column(of: Column) -> pandera.Check:
    def test(values: pd.Series) -> pd.Series:
        if of.choices:
            good = values.isin(of.choices)
        else:
            numbers = _plain(values)
            is_large = (numbers >= of.least) | close(numbers, of.least)
            good = is_large & ((numbers <= of.most) | close(numbers, of.most))
        return pd.Series(good.to_numpy(bool) | values.isna().to_numpy(bool), values.index)

    return pandera.Check(test, error=of.values, ignore_na=False)


def _of_rows(of: Relation) -> pandera.Check:
    def test(frame: pd.DataFrame) -> pd.Series:
        good = np.asarray(of.test(*(_plain(frame[name]) for name in of.columns)), dtype=bool)
        unknown = frame[list(of.columns)].isna().any(axis=1).to_numpy(bool)
        return pd.Series(good if of.null else good | unknown, frame.index)

    return pandera.Check(test, error=of.what, ignore_na=False)


def _plain(values: pd.Series) -> pd.Series:
    if values.dtype in (_PANDAS[REAL], _PANDAS[WHOLE]):
        return pd.Series(values.to_numpy(float, na_value=np.nan), values.index)
    return values


def _violations(name: str, frame: pd.DataFrame, schema: Schema, error: SchemaError) -> list[str]:
    """Convert an error of pandera into a message for each row that breaks the rule. If a whole
    column breaks the rule, for example by its type, return the message of pandera."""
    if error.reason_code not in OF_ROWS:
        return [f"{name}: {str(error).splitlines()[0]}"]
    row_message = _row_message(schema, error)
    rows = sorted(set(error.failure_cases["index"]))
    lines = (f"{_place(name, frame, schema, row)}: {row_message(frame.loc[row])}" for row in rows)
    return list(_first(name, lines))


def _row_message(schema: Schema, error: SchemaError) -> Callable[[pd.Series], str]:
    column, what = error.schema.name, getattr(error.check, "error", "")
    if error.reason_code is SchemaErrorReason.SERIES_CONTAINS_NULLS:
        return lambda row: f"{column} is null, but must have a value"
    if error.reason_code is SchemaErrorReason.DUPLICATES:
        return lambda row: f"another row has the same values of {', '.join(schema.key)}"
    if column is not None:
        return lambda row: f"{column} is {_text(row[column])}, and must be {what}"
    columns = next(each.columns for each in schema.holds if each.what == what)
    return lambda row: (
        f"broken rule: {what} ({', '.join(f'{each} {_text(row[each])}' for each in columns)})"
    )


def _place(name: str, frame: pd.DataFrame, schema: Schema, row: int) -> str:
    of = ", ".join(_text(frame.loc[row, each]) for each in schema.key)
    return f"{name}, row {row + 1} ({of})" if of else f"{name}, row {row + 1}"


def _text(value: Any) -> str:
    if pd.isna(value):
        return "null"
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def _first(name: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield the first MAX_LISTED messages, and then the number of the remaining messages."""
    every = list(lines)
    yield from every[:MAX_LISTED]
    if len(every) > MAX_LISTED:
        yield f"{name}: {len(every) - MAX_LISTED} more rows with the same problem"


def csv_problems(name: str, table: pa.Table, path: Path) -> Iterator[str]:
    """Yield a message for each difference between the CSV file and the Parquet file of a table."""
    with temporary_folder() as folder:
        twin = folder / path.name
        parquet.write(table, folder / f"{name}.parquet", twin)
        header, *rows = _lines(twin)
    try:
        found = _lines(path)
    except (UnicodeDecodeError, csv.Error) as error:
        yield f"{name}.csv cannot be read ({error})"
        return
    if len(found) != len(rows) + 1 or found[0] != header:
        yield (
            f"{name}.csv has {len(found) - 1} rows, but {name}.parquet has {len(rows)}"
            if found[:1] == [header]
            else f"{name}.csv and {name}.parquet have different columns"
        )
        return
    for number, (mine, its) in enumerate(zip(rows, found[1:], strict=True), start=1):
        if len(its) != len(header):
            yield (
                f"{name}.csv, row {number} has {len(its)} fields, but the header has {len(header)}"
            )
            continue
        for column, value, other in zip(header, mine, its, strict=True):
            if value != other:
                yield (
                    f"{name}.csv, row {number}: {column} is {other!r}, but {value!r} in"
                    f" {name}.parquet"
                )


def _lines(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))
