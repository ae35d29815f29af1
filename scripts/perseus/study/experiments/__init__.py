"""Experiments of a study. A kind is a module of the same name in five places:

study/experiments        its settings, and the cells that they ask for
measurement/experiments  how it runs on a server
results/tables           its table
report/figures           its figure
report/conclusions           what it answers, in words

KINDS is the one list of them; everybody else finds a kind's module by its name.
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
"""In the order in which they are documented. Each has a class `Settings` here, whose `kind` it is,
and a class `Run`, what one cell does."""

SEARCHES: Final = ("peak", "frontier")
"""Kinds that search peaks, which share tables and figures."""

OTHER_KINDS: Final = tuple(kind for kind in KINDS if kind not in SEARCHES)
"""Kinds whose table and figure have the name of the kind; a peak has several."""


def settings_of(kind: str) -> Any:
    """The settings class of a kind."""
    return import_module(f"{__name__}.{kind}").Settings


def run_of(kind: str) -> Any:
    """The class of one run (one cell) of a kind."""
    return import_module(f"{__name__}.{kind}").Run


def _as_run(value: Any) -> Any:
    return run_of(value["kind"]).model_validate(value) if isinstance(value, dict) else value


RunOfKind = BeforeValidator(_as_run)
"""Lets a task hold a run of any kind: it is validated by that kind's own class."""
