"""Define the kinds of experiments, such as `peak` and `soak`.

For each kind, two packages have a module with the name of the kind:

- study/experiments: the settings of the experiment, and what it measures in one cell
- measurement/experiments: how it measures a server

For each kind in `OTHER_KINDS`, three more packages have such a module:

- results/tables: its table
- report/figures: its figure
- report/conclusions: its conclusion in the report

`KINDS` is the only list of kinds. Code outside this package imports a module by the name of its
kind.
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
"""All kinds of experiments, in the order in which the documentation lists them. In this package,
the module of a kind has two classes: `Settings` (the keys of the experiment in a configuration) and
`Run` (what Perseus measures in one cell)."""

SEARCHES: Final = ("peak", "frontier")
"""Kinds of experiments without tables and figures of their own: they share the tables and figures
about peaks."""

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
"""Validator of the field `run` of a task. It converts a dictionary into the class `Run` of the kind
of experiment that the dictionary names."""
