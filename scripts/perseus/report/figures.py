"""Draw one figure of a study from its tables and raw results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from perseus.report.figure_ceilings import ceilings
from perseus.report.figure_concurrency import concurrency
from perseus.report.figure_latency import latency_by_rate, latency_ecdf
from perseus.report.figure_rates import costs, frontier, peaks
from perseus.report.figure_style import Results, Style, drawing, save
from perseus.report.figure_utilisation import utilisation

FIGURES = {
    "peaks": peaks,
    "frontier": frontier,
    "costs": costs,
    "latency_by_rate": latency_by_rate,
    "latency_ecdf": latency_ecdf,
    "utilisation": utilisation,
    "ceilings": ceilings,
    "concurrency": concurrency,
}


def draw(
    name: str,
    tables: Mapping[str, Path],
    cells: Sequence[Path],
    settings: Mapping[str, Any],
    svg: Path,
    png: Path,
) -> None:
    """Draw figure `name`; `cells` are folders of raw results, `settings` a `plan.figure_slice`."""
    frames = {table: pd.read_parquet(path) for table, path in tables.items()}
    style = Style(**settings)
    with drawing(style):
        save(FIGURES[name](Results(**frames, cells=tuple(cells)), style), style, svg, png)
