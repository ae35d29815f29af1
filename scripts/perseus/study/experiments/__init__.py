"""Define the kinds of experiments. Each kind has a module of the same name in five packages.

The module in study/experiments has the settings and cells of a kind. The module in
measurement/experiments has its procedure on a server, in results/tables its table, in
report/figures its figure, and in report/conclusions its conclusion. KINDS is the only list of
kinds: other code finds the modules of a kind by the name of the kind.
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
"""All kinds, in the order of the documentation. The module of each kind in this package has two
classes: `Settings` is a part of the configuration, and `Run` is the work of one cell."""

SEARCHES: Final = ("peak", "frontier")
"""Kinds that search peaks; these kinds share tables and figures."""

OTHER_KINDS: Final = tuple(kind for kind in KINDS if kind not in SEARCHES)
"""Kinds with one table and one figure, which have the name of the kind."""


def settings_of(kind: str) -> Any:
    """Return the class `Settings` of a kind of experiment."""
    return import_module(f"{__name__}.{kind}").Settings


def run_of(kind: str) -> Any:
    """Return the class `Run` of a kind of experiment; a run is the work of one cell."""
    return import_module(f"{__name__}.{kind}").Run


def _as_run(value: Any) -> Any:
    return run_of(value["kind"]).model_validate(value) if isinstance(value, dict) else value


RunOfKind = BeforeValidator(_as_run)
"""Type of a run of any kind in a task: the class `Run` of the kind validates it."""
