"""Figures: each module draws the figure of its name. Every kind of experiment but the peak has one
of its own name.

Such a module has `draw`, which makes a matplotlib figure of what it is to draw, with the results
for all else, in a style, and CAPTION, which says what the figure lets one see. What it draws is the
table of its name; where it is something else, the module has `data`, which makes it of the results.
ALSO names the tables that have the rest of its numbers.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from perseus.study.experiments import OTHER_KINDS

if TYPE_CHECKING:  # Snakemake reads the list, and needs no more
    import pandas as pd

    from perseus.report.figure_data import FigureData


@dataclass(frozen=True)
class FigureFacts:
    """Properties of a figure.

    It shows experiments of one `kind`, or what `Study.kinds` has beside them: studies without have
    no such figure. Beside the tables it may read the raw results of their cells.
    """

    reads_raw: bool = False
    kind: str = "peak"


READ_RAW: Final = ("soak",)
"""The kinds whose figure of their own name reads raw results, of which their table has the sum."""

FIGURES: Final = {
    "fleets": FigureFacts(kind="demand"),
    "break_even": FigureFacts(kind="choice"),
    "cost_map": FigureFacts(kind="choice"),
    "peaks": FigureFacts(),
    "frontier": FigureFacts(),
    "predictions": FigureFacts(kind="mixes"),
    "costs": FigureFacts(kind="prices"),
    "servers": FigureFacts(kind="servers"),
    "decomposition": FigureFacts(),
    "latency_by_rate": FigureFacts(reads_raw=True),
    "latency_ecdf": FigureFacts(reads_raw=True),
    "utilisation": FigureFacts(reads_raw=True),
    "speed": FigureFacts(reads_raw=True),
    "ceilings": FigureFacts(),
    "preprocessing": FigureFacts(kind="preprocessing"),
    "grid": FigureFacts(kind="grid"),
    **{kind: FigureFacts(reads_raw=kind in READ_RAW, kind=kind) for kind in OTHER_KINDS},
}
"""In the order in which the report shows them."""


def figures_of(kinds: Set[str]) -> tuple[str, ...]:
    """The figures of a study with these kinds of experiments."""
    return tuple(name for name, facts in FIGURES.items() if facts.kind in kinds)


def module_of(figure: str) -> Any:
    return import_module(f"{__name__}.{figure}")


def data_of(figure: str, results: FigureData) -> pd.DataFrame:
    """The data of a figure, which are written beside it."""
    module = module_of(figure)
    return module.data(results) if hasattr(module, "data") else results.tables[figure]


def files_of(figure: str) -> tuple[str, ...]:
    """Data files of the figure, relative to the report."""
    also = getattr(module_of(figure), "ALSO", ())
    return (f"figures/{figure}.csv", *(f"tables/{table}.csv" for table in also))
