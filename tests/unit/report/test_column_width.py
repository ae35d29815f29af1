"""Tests of figures with the width of a column and up to twelve models: no text is cut or covers
another text, greyscale distinguishes all series, and the data fills the axes."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest
import synthetic
import synthetic_files
from drawn import COLUMN, figure_of, laid_out, texts_of
from matplotlib.colors import to_rgba
from matplotlib.container import ErrorbarContainer
from matplotlib.lines import Line2D

from perseus.host.files import write_json
from perseus.report.figure_data import FigureData
from perseus.report.figures import FIGURES, module_of
from perseus.report.style import FAMILIES, NOTHING, drawing, row_names
from perseus.results.records import Record
from perseus.results.study_results import StudyResults
from perseus.study.tasks.tables import DemandLevel

TWELVE = (
    "squeezenet1_1",
    "mobilenet_v3_small",
    "resnet18",
    "shufflenet_v2_x1_0",
    "mnasnet1_0",
    "efficientnet_b0",
    "resnet50",
    "densenet121",
    "googlenet",
    "mobilenet_v3_large",
    "regnet_y_400mf",
    "vgg11",
)
LEAST_PT = 5.0
GLYPHS = {"●", "○"}
"""Marks that the figure of the frontier draws as texts."""

OF_PAIRS = ("frontier", "cost_map", "break_even", "peaks", "costs")


def truth_of(names, **changes):
    capacities = {name: 140.0 + 45 * i for i, name in enumerate(names)}
    return synthetic.Truth(capacities, repeats=1, bootstraps=20, **changes)


def with_preprocessing(made):
    """Return dedicated cells in which, by turns, the server and the client preprocess images."""
    for i, record in enumerate(made):
        record = synthetic.by_server(record)
        record["cell"]["tenants"][0]["preprocessing"] = ("server", "client")[i % 2]
        yield record


def study_of(folder, names):
    """Return the results of a study with every kind of experiment on one server, and with searches
    on a second server."""
    truth, ones = truth_of(names), (1,) * len(names)
    mixes = [ones, (2, *ones[1:]), (1, 2, *ones[2:])]
    searched = synthetic.records(truth, mixes=mixes, holds=())
    made = [*with_preprocessing(searched[: len(names)]), *searched[len(names) :]]
    made += synthetic.background_records(truth, percents=(50 // len(names),))
    made += [synthetic.on_server(record, "cpu2", "openvino") for record in searched]
    cells = synthetic_files.write(folder, made)
    write_json(folder / "ceilings/cpu1.json", synthetic.ceiling(names))
    for kind in ("sweep", "startup", "slowdown", "soak"):
        cells.append(getattr(synthetic_files, f"write_{kind}")(folder, names))
    cells.append(synthetic_files.write_aa(folder))
    cells.append(synthetic_files.write_replay(folder, synthetic.replay_record(names)))
    for i, name in enumerate(names):
        record = synthetic.catalogue_record(name, full_rps=33.0 + 7 * i)
        cells.append(synthetic_files._write_cell(folder, record, []))
    levels = [
        DemandLevel(name=f"at {word}", rps=dict.fromkeys(names, rps))
        for word, rps in (("night", 5.0), ("day", 30.0), ("Christmas", 80.0))
    ]
    demand = synthetic.demand({}).model_copy(update={"levels": tuple(levels)})
    prices = {"cpu1": synthetic.PRICE, "cpu2": synthetic.PRICE}
    task = synthetic.TASK.model_copy(update={"demand": demand, "prices": prices})
    read = StudyResults.read(task, cells, [folder / "ceilings/cpu1.json"])
    inputs = [{"dims": [3, 224, 224]}]
    exports = {name: {"architecture": name, "inputs": inputs} for name in names}
    read = StudyResults(read.task, read.records, read.ceilings, exports)
    frames = {name: t.to_pandas() for name, t in synthetic_files.all_tables(read).items()}
    factors = {f"r{i}": 0.6 + 0.2 * i for i in range(8)}
    grid = synthetic_files.tables_of(synthetic.grid_records(factors), synthetic.grid_task(factors))[
        "grid"
    ]
    frames["grid"] = grid.to_pandas()
    lines = frames["peaks"][["mix", "load_line"]]
    of_all = lines.loc[lines["mix"].str.len().idxmax()]
    frames["grid"].loc[frames["grid"]["load_line"] == "mix-1-1", ["mix", "load_line"]] = [*of_all]
    return FigureData(frames, tuple(cells))


def pairs_of(names, servers=("cpu1",)):
    """Return the results of a study of pairs of models on each server."""
    made = []
    for server in servers:
        alone = synthetic.records(truth_of(names), mixes=(), holds=())
        for pair in zip(names[::2], names[1::2], strict=True):
            truth = truth_of(names)
            capacities = {name: truth.capacities[name] for name in pair}
            truth = synthetic.Truth(capacities, repeats=1, bootstraps=20)
            mixes = ((1, 1), (2, 1), (1, 2))
            for record in synthetic.records(truth, mixes=mixes, holds=())[2:]:
                cell = record["cell"]
                scenario = f"cpu1.{'-'.join(pair)}"
                name = f"{scenario}.{cell['run']['name']}.r1"
                alone.append(record | {"cell": cell | {"scenario": scenario, "cell": name}})
        made += [synthetic.on_server(record, server, "onnxruntime") for record in alone]
    prices = {
        server: synthetic.PRICE.model_copy(update={"on_demand_usd_per_hour": 0.04 + 0.01 * i})
        for i, server in enumerate(servers)
    }
    task = synthetic.TASK.model_copy(update={"prices": prices})
    found = synthetic_files.tables_of(made, task)
    return FigureData({name: table.to_pandas() for name, table in found.items()})


@pytest.fixture(scope="module", params=[2, 12], ids=["two models", "twelve models"])
def study(request, tmp_path_factory):
    return study_of(tmp_path_factory.mktemp("study"), TWELVE[: request.param])


@pytest.fixture(scope="module")
def in_column(study):
    """Return a function that returns a figure of the study in a column, and draws it once."""
    return cache(lambda name: laid_out(name, of_kind(name, study), COLUMN))


@pytest.fixture(scope="module")
def pairs():
    return pairs_of(TWELVE)


@pytest.fixture(scope="module")
def servers():
    return pairs_of(TWELVE[:2], [f"cpu{i}" for i in range(1, 9)])


def of_kind(name, study):
    """Return the results of a study with the cells whose raw results the figure reads."""
    kind = FIGURES[name].kind
    cells = [cell for cell in study.cells if Record.read(cell).task.run.kind == kind]
    return FigureData(study.tables, tuple(cells))


def assert_legible(figure):
    """Assert that all texts are inside the figure, in its font, and that none covers another."""
    texts = texts_of(figure)
    boxes = [text.get_window_extent() for text in texts]
    for text, box in zip(texts, boxes, strict=True):
        assert text.get_fontname() == FAMILIES["serif"]
        assert text.get_fontsize() >= LEAST_PT or text.get_text() in GLYPHS, text
        assert box.x0 >= -1 and box.x1 <= figure.bbox.x1 + 1, text
        assert box.y0 >= -1 and box.y1 <= figure.bbox.y1 + 1, text
    near = [
        (one, other)
        for (one, first), (other, second) in combinations(zip(texts, boxes, strict=True), 2)
        if first.overlaps(second) and not {one.get_text(), other.get_text()} & GLYPHS
    ]
    covered = [(one, other) for one, other in near if outline(one).intersects_path(outline(other))]
    assert not covered, [(one.get_text(), other.get_text()) for one, other in covered]


def outline(text):
    """Return the outline of a text, which is a rectangle with the rotation of the text."""
    text.set_bbox({"boxstyle": "square,pad=-0.1"})
    text.update_bbox_position_size(text.figure.canvas.get_renderer())
    patch = text.get_bbox_patch()
    return patch.get_transform().transform_path(patch.get_path())


@pytest.mark.parametrize("name", FIGURES)
def test_words_stay_in_a_column_and_cover_no_other_words(name, study, in_column):
    figure = in_column(name)
    is_empty = name == "cost_map" and len(study.names) > 2  # this study has no pairs of models
    assert (figure.get_gid() == NOTHING) == is_empty
    assert_legible(figure)
    for panel in figure.axes:
        if panel.get_subplotspec() is not None:
            assert panel.get_position().width > 0.15


@pytest.mark.parametrize("name", OF_PAIRS)
def test_words_about_six_pairs_of_models_cover_no_other_words(name, pairs):
    assert_legible(laid_out(name, pairs, COLUMN))


def test_a_narrow_font_has_longer_lines():
    names = ["mobilenet_v3_small alone"]
    with drawing(COLUMN):
        assert row_names(names, COLUMN) == names


def looks_of(handle):
    """Return what distinguishes the handle of a legend in greyscale, and its luminance."""
    if isinstance(handle, Line2D):
        look = (handle.get_marker(), str(handle._unscaled_dash_pattern), handle.get_fillstyle())
        look += (handle.get_markersize() > 7, handle.get_linewidth() > 2)
        is_mark = handle.get_marker() not in ("None", "")
        colour = handle.get_markerfacecolor() if is_mark else handle.get_color()
    else:
        look, colour = (handle.get_hatch(), handle.get_edgecolor()), handle.get_facecolor()
    *rgb, alpha = to_rgba(colour)
    return look, float(np.dot(rgb, (0.299, 0.587, 0.114))) if alpha else None


def assert_greyscale(figure):
    for legend in figure.legends:
        words = [text.get_text() for text in legend.get_texts()]
        looks = dict(zip(words, map(looks_of, legend.legend_handles), strict=True))
        for one, other in combinations(words, 2):
            (look, grey), (other_look, other_grey) = looks[one], looks[other]
            is_text = grey is None and other_grey is None
            same = look == other_look and not is_text
            assert not same or abs(grey - other_grey) > 0.2, (one, other)


@pytest.mark.parametrize("name", FIGURES)
def test_greyscale_distinguishes_all_series(name, in_column):
    assert_greyscale(in_column(name))


@pytest.mark.parametrize("name", ["break_even", "servers", "peaks", "costs"])
def test_greyscale_distinguishes_servers(name, servers):
    figure = laid_out(name, servers, COLUMN)
    assert_greyscale(figure)
    assert_legible(figure)


def test_lines_of_several_servers_have_the_markers_of_the_legend(servers):
    figure = figure_of("break_even", servers, COLUMN)
    handles = figure.legends[0].legend_handles[:6]
    markers = {handle.get_color(): handle.get_marker() for handle in handles}
    assert len(set(markers.values())) == 6
    for panel in figure.axes:
        for line in panel.lines:
            assert line.get_marker() == markers[line.get_color()]


def test_the_frontier_is_filled_up_to_its_estimates():
    truth = truth_of(TWELVE[:2])
    made = synthetic.records(truth, mixes=((1, 2), (2, 1)), holds=())
    found = synthetic_files.tables_of(made)
    tables = {name: table.to_pandas() for name, table in found.items()}
    (panel,) = laid_out("frontier", FigureData(tables), COLUMN).axes
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


@pytest.mark.parametrize("name", FIGURES)
def test_intervals_are_explained(name, in_column):
    figure = in_column(name)
    containers = [each for panel in figure.axes for each in panel.containers]
    entries = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    if any(isinstance(each, ErrorbarContainer) for each in containers):
        assert "95 % interval" in " ".join([module_of(name).CAPTION, *entries])


@pytest.mark.parametrize("name", FIGURES)
def test_titles_are_words_and_no_names_of_folders(name, study, in_column):
    tables = study.tables.values()
    folders = {cell.name for cell in study.cells} | {"cpu1", "cpu2"}
    folders |= {name for table in tables if "scenario" in table for name in table["scenario"]}
    for panel in in_column(name).axes:
        title = panel.get_title(loc="left").replace("\n", " ")
        assert title.strip() not in folders
        assert not any(folder in title for folder in folders if "." in folder)
