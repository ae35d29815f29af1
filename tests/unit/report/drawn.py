"""Figures as the pipeline draws them, but without files."""

from matplotlib.figure import Figure

from perseus.report.figure_data import FigureData
from perseus.report.figures import data_of, module_of
from perseus.report.style import drawing
from perseus.study.tasks.figure import FigureTask

STYLE = FigureTask(width_mm=160, font_pt=9, dpi=60, pricing="on_demand")


def figure_of(name: str, results: FigureData, style: FigureTask = STYLE) -> Figure:
    with drawing(style):
        return module_of(name).draw(data_of(name, results), results, style)
