"""Figures as the pipeline draws them, but without files."""

import io
from unittest.mock import patch

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.text import Text

from perseus.report.figure_data import FigureData
from perseus.report.figures import data_of, module_of
from perseus.report.style import drawing, fit
from perseus.study.tasks.figure import FigureTask

STYLE = FigureTask(width_mm=160, font_pt=9, dpi=60, pricing="on_demand")
COLUMN = FigureTask(width_mm=84.6, font="serif", font_pt=8, dpi=60, pricing="on_demand")
"""The style of a figure in a column of a paper."""


def figure_of(name: str, results: FigureData, style: FigureTask = STYLE) -> Figure:
    with drawing(style):
        return module_of(name).draw(data_of(name, results), results, style)


def laid_out(name: str, results: FigureData, style: FigureTask = STYLE, dpi: float = 100) -> Figure:
    """Return the figure as it is written: laid out once, and drawn with `dpi` dots per inch."""
    with drawing(style):
        figure = figure_of(name, results, style)
        fit(figure)
        FigureCanvasSVG(figure).print_svg(io.StringIO())
        figure.set_layout_engine("none")
        FigureCanvasAgg(figure)
        figure.set_dpi(dpi)
        figure.draw_without_rendering()
    return figure


def texts_of(figure: Figure) -> list[Text]:
    """Return the texts that a figure draws, such as the labels of those ticks that lie on an
    axis."""
    drawn: list[Text] = []
    with patch.object(Text, "draw", lambda text, renderer: drawn.append(text)):
        figure.draw_without_rendering()
    return [text for text in drawn if text.get_visible() and text.get_text().strip()]
