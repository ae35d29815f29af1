"""Tests of figures with the width of a column: no text is cut, and the data fills the axes."""

import numpy as np
import pytest
import synthetic
import synthetic_files
from drawn import figure_of

from perseus.report.figure_data import FigureData
from perseus.report.style import drawing, fit
from perseus.study.tasks.figure import FigureTask

COLUMN = FigureTask(width_mm=84.6, font="serif", font_pt=8, dpi=60, pricing="on_demand")
TWO = {"squeezenet1_1": 140.0, "mobilenet_v3_small": 230.0}
TWELVE = TWO | {f"a_model_with_a_name_{i}": 20.0 + 10 * i for i in range(10)}
OF_TABLES = ("peaks", "frontier", "costs", "cost_map", "break_even", "decomposition")


@pytest.fixture(scope="module", params=[TWO, TWELVE], ids=["two models", "twelve models"])
def results(request):
    truth = synthetic.Truth(request.param, repeats=1, bootstraps=20)
    ones = (1,) * len(request.param)
    made = synthetic.records(truth, mixes=(ones, (2, *ones[1:])), holds=())
    found = synthetic_files.tables_of(made)
    return FigureData({name: table.to_pandas() for name, table in found.items()})


def laid_out(name, results):
    with drawing(COLUMN):
        figure = figure_of(name, results, COLUMN)
        fit(figure)
        figure.draw_without_rendering()
    return figure


@pytest.mark.parametrize("name", OF_TABLES)
def test_words_stay_in_a_column(name, results):
    figure = laid_out(name, results)
    panels = [panel for panel in figure.axes if panel.get_subplotspec() is not None]
    words = [word for p in panels for word in (p._left_title, p.xaxis.label)]
    for drawn in [word for word in words if word.get_text()] + list(figure.legends):
        box = drawn.get_window_extent()
        assert box.x0 >= -1 and box.x1 <= figure.bbox.width + 1, drawn
    for panel in panels:
        assert panel.get_position().width > 0.15


def test_the_frontier_is_filled_up_to_its_estimates():
    truth = synthetic.Truth(TWO, repeats=1, bootstraps=20)
    made = synthetic.records(truth, mixes=((1, 2), (2, 1)), holds=())
    found = synthetic_files.tables_of(made)
    tables = {name: table.to_pandas() for name, table in found.items()}
    (panel,) = laid_out("frontier", FigureData(tables)).axes
    areas = [patch.get_xy() for patch in panel.patches]
    assert len(areas) == 4  # the dedicated peaks are at the ends of the axes
    corners = max(areas, key=lambda area: area.max(axis=0).prod())
    assert {*map(tuple, corners)} == {
        (x, y) for x in (0, corners[1][0]) for y in (0, corners[2][1])
    }
    corners = np.vstack(areas)
    for drawn, end in zip(
        corners.max(axis=0), (panel.get_xlim()[1], panel.get_ylim()[1]), strict=True
    ):
        assert 0.7 * end < drawn < end
