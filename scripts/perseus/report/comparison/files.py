"""The files of a comparison: table, summary and figure."""

from __future__ import annotations

from pathlib import Path

from perseus.host import parquet
from perseus.host.files import whole
from perseus.report.comparison.figure import draw
from perseus.report.comparison.text import markdown
from perseus.report.style import drawing, save
from perseus.results.compare.table import Comparison
from perseus.study.tasks.figure import FigureTask


def write(found: Comparison, style: FigureTask, folder: Path) -> None:
    """comparison.{parquet,csv,svg,png} and summary.md, each whole or not at all."""
    paths = {kind: folder / f"comparison.{kind}" for kind in ("parquet", "csv", "svg", "png")}
    with drawing(style):
        figure = draw(found.table.to_pandas(), style)
        save(figure, style, paths["svg"], paths["png"])
    with whole(folder / "summary.md") as partial:
        partial.write_text(markdown(found), encoding="utf-8")
    parquet.write(found.table, paths["parquet"], paths["csv"])
