"""Write the files of a comparison: table, summary, figure and page."""

from __future__ import annotations

from pathlib import Path

from perseus.host import parquet
from perseus.host.files import whole
from perseus.report.comparison import page
from perseus.report.comparison.figure import draw
from perseus.report.comparison.text import markdown
from perseus.report.style import drawing, save
from perseus.results.compare.table import Comparison
from perseus.study.tasks.figure import FigureTask


def write(found: Comparison, style: FigureTask, folder: Path) -> None:
    """Write comparison.{parquet,csv,svg,png,html} and summary.md, each atomically."""
    paths = {kind: folder / f"comparison.{kind}" for kind in ("parquet", "csv", "svg", "png")}
    with drawing(style):
        figure = draw(found.table.to_pandas(), style)
        save(figure, style, paths["svg"], paths["png"])
    with whole(folder / "comparison.html") as partial:
        partial.write_text(page.render(found, paths["svg"].read_bytes()), encoding="utf-8")
    with whole(folder / "summary.md") as partial:
        partial.write_text(markdown(found), encoding="utf-8")
    parquet.write(found.table, paths["parquet"], paths["csv"])
