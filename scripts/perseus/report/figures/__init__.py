"""Draw the figures of the report: each module draws the figure of the same name.

Every kind of experiment except `peak` has a figure of the same name. Each module has a function
`draw` and a constant CAPTION. The function `draw` returns a matplotlib figure, given the data of
the figure, the results and a style. CAPTION explains the figure to the reader. The optional
function `data` computes the data of the figure from the results. Without this function, the data
are the table with the name of the figure. The optional constant ALSO names other tables whose
numbers the figure shows.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from perseus.study.experiments import OTHER_KINDS

if TYPE_CHECKING:  # Snakemake needs only the names of the figures
    import pandas as pd

    from perseus.report.figure_data import FigureData


@dataclass(frozen=True)
class FigureFacts:
    """Properties of a figure.

    `kind` is a kind of experiment, or another property of a study such as "demand". A study has the
    figure if `Study.kinds` contains `kind`. If `reads_raw` is true, the figure reads the raw
    results of the cells in addition to the tables.
    """

    reads_raw: bool = False
    kind: str = "peak"


READ_RAW: Final = ("soak",)
"""Kinds of experiments whose figure reads raw results, since the table of the kind has only a
summary."""

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
"""Names of all figures, in the order of the report."""


def figures_of(kinds: Set[str]) -> tuple[str, ...]:
    """Return the names of the figures of a study whose `Study.kinds` is `kinds`."""
    return tuple(name for name, facts in FIGURES.items() if facts.kind in kinds)


def module_of(figure: str) -> Any:
    return import_module(f"{__name__}.{figure}")


def data_of(figure: str, results: FigureData) -> pd.DataFrame:
    """Return the data of a figure, which Perseus writes into the CSV file of the figure."""
    module = module_of(figure)
    return module.data(results) if hasattr(module, "data") else results.tables[figure]


def files_of(figure: str) -> tuple[str, ...]:
    """Return the paths of the data files of a figure, relative to the report."""
    also = getattr(module_of(figure), "ALSO", ())
    return (f"figures/{figure}.csv", *(f"tables/{table}.csv" for table in also))
