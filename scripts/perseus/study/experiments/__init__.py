"""Define the kinds of experiments. A module of a kind has the name of the kind.

Each kind has a module in two packages:

- study/experiments: settings and cells
- measurement/experiments: procedure on a server

Each kind of `OTHER_KINDS` also has a module in three further packages:

- results/tables: table
- report/figures: figure
- report/conclusions: conclusion

`KINDS` is the only list of kinds: code outside this package finds a module by the name of its kind.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from pydantic import BeforeValidator

KINDS: Final = (
    "peak",
    "concurrency",
    "startup",
    "aa",
    "frontier",
    "slowdown",
    "background",
    "replay",
    "soak",
    "catalogue",
)
"""All kinds of experiments, in the order of the documentation. In this package, the module of a
kind has two classes: `Settings` (a section of the configuration) and `Run` (what Perseus measures
in one cell)."""

SEARCHES: Final = ("peak", "frontier")
"""Kinds of experiments that share one set of tables and figures, because both search peaks."""

OTHER_KINDS: Final = tuple(kind for kind in KINDS if kind not in SEARCHES)
"""All other kinds of experiments. Each kind has one table and one figure with the name of the
kind."""


def settings_of(kind: str) -> Any:
    """Return the class `Settings` of a kind of experiment."""
    return import_module(f"{__name__}.{kind}").Settings


def run_of(kind: str) -> Any:
    """Return the class `Run` (what Perseus measures in one cell) of a kind of experiment."""
    return import_module(f"{__name__}.{kind}").Run


def _as_run(value: Any) -> Any:
    return run_of(value["kind"]).model_validate(value) if isinstance(value, dict) else value


RunOfKind = BeforeValidator(_as_run)
"""Type of the field `run` of a task: the class `Run` of the experiment's kind validates the
field."""
