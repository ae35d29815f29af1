"""Experiments of a study. A kind is a module of the same name in five packages.

study/experiments has its settings and their cells, measurement/experiments its procedure on a
server, results/tables its table, report/figures its figure, and report/conclusions its conclusion.
KINDS is the only list of kinds; other code finds the modules of a kind by its name.
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
"""All kinds, in the order of the documentation. Each has a class `Settings` here with this
`kind`, and a class `Run` for the work of one cell."""

SEARCHES: Final = ("peak", "frontier")
"""Kinds that search peaks, which share tables and figures."""

OTHER_KINDS: Final = tuple(kind for kind in KINDS if kind not in SEARCHES)
"""Kinds whose table and figure have the name of the kind; a peak has several tables and figures."""


def settings_of(kind: str) -> Any:
    """Return the settings class of a kind."""
    return import_module(f"{__name__}.{kind}").Settings


def run_of(kind: str) -> Any:
    """Return the class of one run (one cell) of a kind."""
    return import_module(f"{__name__}.{kind}").Run


def _as_run(value: Any) -> Any:
    return run_of(value["kind"]).model_validate(value) if isinstance(value, dict) else value


RunOfKind = BeforeValidator(_as_run)
"""Type of a run of any kind in a task: the class of the kind validates it."""
