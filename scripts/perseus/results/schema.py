"""Define a table: its columns, the values that they allow, and the rules that hold in each row.

This is the only definition of a table. The Parquet and CSV files, the section in
docs/reference/data.md and the check of the written file (`results.check`) follow from it.
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
"""Relative tolerance of equations, for the errors of solvers and rounding."""

_MOST: Final = {"share": 1.0, "%": 100.0}
"""Largest value by unit."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Numbers lie from `least` to `most`. Texts are one of `choices`, or any text if there are no
    choices. Values may be missing only with `null`.
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
        """The allowed values as text; empty if any value is allowed."""
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

    By default, real numbers may be null, which stands for NaN, and other values may not. Values
    with a unit and counts are not negative, and shares are at most 1.
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
    """A rule for each row in which no column of `columns` is null; with `null`, for all rows.

    `what` is a formula or a sentence. `test` gets the columns in their order, numbers as floats.
    """

    what: str
    columns: tuple[str, ...]
    test: Callable[..., Any]
    null: bool = False


def holds(what: str, test: Callable[..., Any], *, null: bool = False) -> Relation:
    """Define a rule between the columns that the parameters of `test` name."""
    return Relation(what, tuple(inspect.signature(test).parameters), test, null)


def ascending(*names: str) -> Relation:
    """Define the rule that columns ascend, such as a value between the ends of its interval."""

    def test(*values: Any) -> Any:
        return np.all([(a <= b) | close(a, b) for a, b in pairwise(values)], axis=0)

    return Relation(" <= ".join(names), names, test)


def close(a: Any, b: Any) -> Any:
    """Return whether numbers are equal within TOLERANCE; infinite ones only to themselves."""
    return np.isclose(a, b, rtol=TOLERANCE, atol=1e-9)


@dataclass(frozen=True)
class Schema:
    """The columns in their order. No two rows have the same values of `key`."""

    columns: Sequence[Column]
    key: Sequence[str] = ()
    holds: Sequence[Relation] = ()

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.columns]

    @cached_property
    def arrow(self) -> pa.Schema:
        """The Arrow schema, with units and meanings in the metadata of its fields."""
        return pa.schema(
            [parquet.column(each.name, each.kind, each.unit, each.meaning) for each in self.columns]
        )
