"""Draw one figure of a study from its tables and raw results, and write the data of the figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from perseus.host.files import whole
from perseus.report.figure_data import FigureData
from perseus.report.figures import data_of, module_of
from perseus.report.style import drawing, save
from perseus.results.scenario_names import with_scenario_names
from perseus.study.tasks.figure import FigureTask


def draw(
    name: str,
    tables: Mapping[str, Path],
    cells: Sequence[Path],
    style: FigureTask,
    svg: Path,
    png: Path,
    csv: Path,
) -> None:
    """Draw the figure `name` into the files `svg` and `png`, and write its data into `csv`.

    `tables` maps the name of a table to its Parquet file. `cells` has the folders of the cells
    whose raw results the figure reads.
    """
    frames = with_scenario_names({table: pd.read_parquet(path) for table, path in tables.items()})
    results = FigureData(frames, tuple(cells))
    data = data_of(name, results)
    with drawing(style):
        save(module_of(name).draw(data, results, style), style, svg, png)
    with whole(csv) as partial:
        data.to_csv(partial, index=False, float_format="%.6g")
