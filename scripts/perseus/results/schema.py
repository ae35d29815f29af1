"""Define a table: its columns, the allowed values, and the rules that each row must keep.

From the definition of a table, Perseus makes its Parquet and CSV files and its section in
docs/reference/data.md, and checks the written files (`results.check`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from perseus.host import parquet
from perseus.host.parquet import REAL, WHOLE

TOLERANCE: Final = 1e-6
"""Relative tolerance for errors of rounding and of solvers in equations between columns."""

_MOST: Final = {"share": 1.0, "%": 100.0}
"""Largest allowed value for each unit."""


@dataclass(frozen=True)
class Column:
    """Definition of one column of a table.

    A number lies between `least` and `most`. A text is one of `choices`; if `choices` is empty, any
    text is allowed. A value may be missing (null) only if `null` is true.
    """

    name: str
    kind: pa.DataType
    unit: str
    meaning: str
    null: bool
    least: float
    most: float
    choices: tuple[str, ...]

    @property
    def is_bounded(self) -> bool:
        return bool(np.isfinite([self.least, self.most]).any() or self.choices)

    @property
    def values(self) -> str:
        """Allowed values of the column as text; empty if any value is allowed."""
        some = ", ".join(word or "empty" for word in self.choices)
        if np.isfinite([self.least, self.most]).all():
            some = f"{self.least:g} to {self.most:g}"
        elif np.isfinite(self.least):
            some = f"at least {self.least:g}"
        elif np.isfinite(self.most):
            some = f"at most {self.most:g}"
        return f"{some or 'any'}, or null" if self.null else some


def column(
    name: str,
    kind: pa.DataType,
    unit: str,
    meaning: str,
    *,
    null: bool | None = None,
    least: float | None = None,
    most: float | None = None,
    choices: Iterable[str] = (),
) -> Column:
    """Define a column of a table.

    By default, only columns of real numbers may contain null (for NaN). By default, counts and
    numbers with a unit are at least 0, and shares are at most 1.
    """
    is_positive = kind == WHOLE or (kind == REAL and unit)
    return Column(
        name,
        kind,
        unit,
        meaning,
        null=kind == REAL if null is None else null,
        least=(0.0 if is_positive else -np.inf) if least is None else least,
        most=_MOST.get(unit, np.inf) if most is None else most,
        choices=tuple(map(str, choices)),
    )


@dataclass(frozen=True)
class Relation:
    """A rule that each row of a table must keep.

    Rows with a null in one of `columns` are tested only if `null` is true.

    `what` states the rule as a formula or a sentence. `test` gets one series for each of `columns`,
    with numbers as floats. `test` returns for each row whether the row keeps the rule.
    """

    what: str
    columns: tuple[str, ...]
    test: Callable[..., Any]
    null: bool = False


def holds(what: str, test: Callable[..., Any], *, null: bool = False) -> Relation:
    """Define a rule for several columns of a table. For each of these columns, `test` has a
    parameter with the name of the column."""
    return Relation(what, tuple(inspect.signature(test).parameters), test, null)


def ascending(*names: str) -> Relation:
    """Define the rule that in each row the values of these columns ascend, for example the lower
    end of an interval, the value and the upper end."""

    def test(*values: Any) -> Any:
        return np.all([(a <= b) | close(a, b) for a, b in pairwise(values)], axis=0)

    return Relation(" <= ".join(names), names, test)


def close(a: Any, b: Any) -> Any:
    """Return whether two numbers are equal within TOLERANCE. Infinity is equal only to infinity."""
    return np.isclose(a, b, rtol=TOLERANCE, atol=1e-9)


@dataclass(frozen=True)
class Schema:
    """Definition of a table: its columns in their order. No two rows have the same values in the
    columns `key`."""

    columns: Sequence[Column]
    key: Sequence[str] = ()
    holds: Sequence[Relation] = ()

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.columns]

    @cached_property
    def arrow(self) -> pa.Schema:
        """Arrow schema of the table, with units and meanings in the metadata of the fields."""
        return pa.schema(
            [parquet.column(each.name, each.kind, each.unit, each.meaning) for each in self.columns]
        )
