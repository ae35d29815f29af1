"""Draw one figure of a study from its tables and raw results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from perseus.report.figure_data import FigureData
from perseus.report.figures import module_of
from perseus.report.style import drawing, save
from perseus.study.tasks.figure import FigureTask


def draw(
    name: str,
    tables: Mapping[str, Path],
    cells: Sequence[Path],
    style: FigureTask,
    svg: Path,
    png: Path,
) -> None:
    """Draw figure `name`; `tables` are by name, `cells` folders of the raw results it reads."""
    frames = {table: pd.read_parquet(path) for table, path in tables.items()}
    with drawing(style):
        save(module_of(name).draw(FigureData(frames, tuple(cells)), style), style, svg, png)
