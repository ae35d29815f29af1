"""Define a table: its columns, their allowed values, and the rules that each row must keep.

From this definition, Perseus makes the Parquet and CSV files of the table and its section in
docs/reference/data.md. Perseus also checks the written files by this definition (`results.check`).
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
"""Relative tolerance for two values that should be equal, but may differ by rounding errors or by
errors of solvers."""

_MOST: Final = {"share": 1.0, "%": 100.0}
"""Default of the largest allowed value of a column, by its unit."""


@dataclass(frozen=True)
class Column:
    """Definition of one column of a table.

    A number must lie between `least` and `most`. A text must be one of `choices`; if `choices` is
    empty, any text is allowed. A value may be missing (null) only if `null` is true.
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
        """Allowed values of the column as text, such as "0 to 1, or null"; empty if any value is
        allowed."""
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

    If `null` is not given, only columns of real numbers may contain null, which stands for NaN. If
    `least` is not given, counts and real numbers with a unit must be at least 0. If `most` is not
    given, shares must be at most 1, and percentages at most 100.
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

    `what` states the rule as a formula or a sentence. `test` gets one series for each of `columns`,
    with numbers as floats. The result of `test` says for each row whether the row keeps the rule.
    If `null` is false, a row with a null in one of `columns` keeps the rule.
    """

    what: str
    columns: tuple[str, ...]
    test: Callable[..., Any]
    null: bool = False


def holds(what: str, test: Callable[..., Any], *, null: bool = False) -> Relation:
    """Define a rule for several columns of a table. The names of the parameters of `test` are the
    names of these columns."""
    return Relation(what, tuple(inspect.signature(test).parameters), test, null)


def ascending(*names: str) -> Relation:
    """Define the rule that each value is at most the next value of the row, in the order of these
    columns: for example lower end of an interval <= value <= upper end."""

    def test(*values: Any) -> Any:
        return np.all([(a <= b) | close(a, b) for a, b in pairwise(values)], axis=0)

    return Relation(" <= ".join(names), names, test)


def close(a: Any, b: Any) -> Any:
    """Return whether two numbers are equal, apart from TOLERANCE. Infinity equals only infinity."""
    return np.isclose(a, b, rtol=TOLERANCE, atol=1e-9)


@dataclass(frozen=True)
class Schema:
    """Definition of a table: its columns in their order, and its rules.

    No two rows may have the same values in all columns of `key`. `holds` has the rules that each
    row must keep.
    """

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
