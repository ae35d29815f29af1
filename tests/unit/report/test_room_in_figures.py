"""Tests that the text in figures is not cut and leaves space for the data."""

from itertools import combinations

import pandas as pd
import pytest
import synthetic
import synthetic_files
from drawn import figure_of, laid_out
from matplotlib.text import Text

from perseus.report.figure_data import FigureData
from perseus.report.plot_marks import by_server
from perseus.report.style import few, short
from perseus.results.study_results import StudyResults

SIX = {
    "squeezenet1_1": 30.0,
    "mobilenet_v3_small": 90.0,
    "resnet18": 50.0,
    "shufflenet_v2_x1_0": 70.0,
    "mnasnet1_0": 40.0,
    "efficientnet_b0": 20.0,
}
EDGE_PX = 2


def results_of(made, task=synthetic.TASK):
    found = synthetic_files.tables_of(made, task)
    return FigureData({name: table.to_pandas() for name, table in found.items()})


def cut(figure, edge=EDGE_PX):
    """Return the texts in a figure that its edges cut, including the names of panels."""
    panels = figure.axes
    texts = [text for panel in panels for text in panel.texts]
    texts += [each for p in panels for each in (p._left_title, p.xaxis.label, p.yaxis.label)]
    for panel in panels:
        low, high = sorted(panel.get_ylim())
        ticks = zip(panel.get_yticks(), panel.get_yticklabels(), strict=True)
        texts += [label for tick, label in ticks if low <= tick <= high]
    shown = [text for text in texts if text.get_text() and text.get_visible()]
    return [text.get_text() for text in shown if not _is_inside(text, figure, edge)]


def _is_inside(text: Text, figure, edge):
    box, page = text.get_window_extent(), figure.bbox
    inside_x = -edge <= box.x0 and box.x1 <= page.x1 + edge
    return inside_x and -edge <= box.y0 and box.y1 <= page.y1 + edge


@pytest.fixture(scope="module")
def beside_many():
    """Return a study in which each of six tenants is searched beside the others, and their mix."""
    truth = synthetic.Truth(SIX, repeats=1, bootstraps=20)
    made = synthetic.records(truth, mixes=[(1,) * 6], holds=[("resnet18", 50)])
    return results_of(made + synthetic.background_records(truth, percents=(5, 10)))


@pytest.mark.parametrize("name", ["peaks", "costs", "decomposition", "frontier", "background"])
def test_panels_keep_their_room_beside_many_tenants_that_stay(name, beside_many):
    figure = laid_out(name, beside_many)
    columns = 2 if name == "background" else 1
    for panel in figure.axes:
        assert panel.get_position().width > 0.4 / columns
    assert not cut(figure)


@pytest.mark.parametrize(
    ("alone", "shared", "rows"),
    [
        ((40,), (0,), [(30, 0)]),
        ((9,), (31,), [(9, 21)]),  # dedicated load lines need 9 of their 10 rows
        ((20,), (40,), [(10, 20)]),
        ((40, 2), (0, 0), [(30, 0), (2, 0)]),
        ((40, 10), (10, 3), [(13, 10), (10, 3)]),
        ((10,) * 8, (20,) * 8, [(2, 4)] * 6),
    ],
)
def test_many_load_lines_have_as_much_room_as_is_left(alone, shared, rows):
    lines = [
        {"server": f"s{n}", "kind": kind, "line": line}
        for n, counts in enumerate(zip(alone, shared, strict=True))
        for kind, count in zip(("dedicated", "mix"), counts, strict=True)
        for line in range(count)
    ]
    shown = by_server(pd.DataFrame(lines))
    assert list(shown) == [f"s{n}" for n in range(len(rows))]
    for of, counts in zip(shown.values(), rows, strict=True):
        first = [list(of[of["kind"] == kind]["line"]) for kind in ("dedicated", "mix")]
        assert first == [list(range(count)) for count in counts]


@pytest.mark.parametrize("name", ["peaks", "decomposition"])
def test_rows_of_names_do_not_write_over_each_other(name, beside_many):
    (panel,) = laid_out(name, beside_many).axes
    boxes = [label.get_window_extent() for label in panel.get_yticklabels()]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


@pytest.mark.parametrize("dpi", [72, 80, 150])
def test_names_stay_in_the_picture_at_every_resolution(dpi, beside_many):
    assert not cut(laid_out("peaks", beside_many, dpi=dpi), edge=0)


def test_who_stays_is_named_where_these_are_few(beside_many):
    names = {short(row) for _, row in beside_many.peaks.iterrows() if row["kind"] == "hold"}
    assert "squeezenet1_1 beside the others at 5 %" in names
    assert "resnet18 held at 50 %" in names
    assert few("a + b") == "a + b"
    assert few(f"{'a' * 30} + {'b' * 30}") == "the others"
    assert few("a" * 60) == "a" * 60


LONG = "customer-facing_product_recommendation_resnet50_finetuned_v2"


@pytest.fixture(scope="module")
def long_names():
    truth = synthetic.Truth({LONG: 30.0, "fraud_detection_on_documents": 90.0}, repeats=1)
    made = synthetic.records(truth, mixes=[(1, 1)], holds=[(LONG, 50)])
    return results_of(made + synthetic.background_records(truth, percents=(25,)))


@pytest.mark.parametrize("name", ["peaks", "costs", "decomposition", "frontier", "background"])
def test_long_names_stay_in_the_figure(name, long_names):
    assert not cut(laid_out(name, long_names))


def test_titles_of_replays_stay_in_the_figure(tmp_path):
    names = (LONG, "fraud_detection_on_documents")
    truth = synthetic.Truth(dict.fromkeys(names, 30.0), repeats=1)
    cells = synthetic_files.write(tmp_path, synthetic.records(truth, mixes=(), holds=()))
    cells.append(synthetic_files.write_replay(tmp_path, synthetic.replay_record(names)))
    found = synthetic_files.all_tables(StudyResults.read(synthetic.TASK, cells, []))
    frames = {name: table.to_pandas() for name, table in found.items()}
    figure = laid_out("replay", FigureData(frames))
    assert LONG in figure.axes[0].get_title(loc="left").replace("\n", "")
    assert not cut(figure)


def servers_of_pairs(count, lost=()):
    """Return the figure data of a pair of tenants on `count` servers.

    The load lines in `lost` have no estimate.
    """
    truth = synthetic.Truth(synthetic.TRUTH.capacities, repeats=1, bootstraps=20)
    made, mixes = [], [(n, 1) for n in range(1, 12)]
    for i in range(count):
        found = synthetic.records(truth, seed=i, mixes=mixes if lost else [(1, 1)])
        found = [
            synthetic.with_outcome(record, "infeasible", "too slow")
            if record["cell"]["run"]["name"] in lost
            else record
            for record in found
        ]
        made += [synthetic.on_server(each, f"cpu{i + 1}", "onnxruntime") for each in found]
    prices = {f"cpu{i + 1}": synthetic.PRICE for i in range(count)}
    return results_of(made, synthetic.TASK.model_copy(update={"prices": prices}))


def test_words_beside_points_stay_in_their_plane():
    figure = laid_out("frontier", servers_of_pairs(2))
    first, second = (panel.get_tightbbox() for panel in figure.axes)
    assert first.x1 <= second.x0 and not cut(figure)
    for panel in figure.axes:
        assert panel.get_position().width > 0.35


def test_load_lines_without_an_estimate_are_counted_where_they_are_many():
    lost = [f"mix-{n}-1" for n in range(2, 12)]
    (panel,) = figure_of("frontier", servers_of_pairs(1, lost)).axes
    (message,) = (t.get_text() for t in panel.texts if t.get_text().startswith("no estimate"))
    assert message.endswith("\n4 more") and message.count("infeasible") == 6


def test_the_title_stands_above_the_names_of_many_tenants():
    truth = synthetic.Truth({f"a_long_model_name_{i}": 10.0 + i for i in range(9)}, repeats=1)
    pairs = [tuple(int(k in pair) for k in range(9)) for pair in combinations(range(9), 2)]
    made = synthetic.records(truth, mixes=[(1,) * 9, *pairs[:32]], holds=())
    for record in made:
        if record["cell"]["scenario"] == "cpu1.shared":
            record["cell"]["scenario"] = "cpu1.all-nine-models-together-on-one-core"
    figure = laid_out("frontier", results_of(made))
    (panel,) = figure.axes
    title = panel._left_title.get_window_extent()
    upright = [text for text in panel.texts if text.get_rotation() == 90]
    assert len(upright) == 9
    assert not any(text.get_window_extent().overlaps(title) for text in upright)


def test_the_legend_of_frontiers_names_what_is_drawn(beside_many):
    for results, is_drawn in ((beside_many, False), (servers_of_pairs(1), True)):
        (legend,) = figure_of("frontier", results).legends
        assert ("first failing" in [text.get_text() for text in legend.get_texts()]) == is_drawn


def grid_of(keys, broken):
    """Return the figure of a grid. Each of six settings has `keys` keys, which are long if `broken`
    is true."""
    factors = {f"r{i}": 0.6 + 0.2 * i for i in range(6)}
    task = synthetic.grid_task(factors)
    for question in task.grids:
        for i, setting in enumerate(question.settings):
            words = [f"key_{n}{'_long' * broken} {i + n}" for n in range(keys)]
            object.__setattr__(setting, "description", ", ".join(words))
    return laid_out("grid", results_of(synthetic.grid_records(factors), task))


@pytest.mark.parametrize(("keys", "broken", "columns"), [(2, 0, 2), (6, 0, 2), (6, 4, 1)])
def test_settings_of_many_keys_are_named_below_their_panel(keys, broken, columns):
    figure = grid_of(keys, broken)
    named = [panel.texts[-1].get_window_extent() for panel in figure.axes]
    assert not any(one.overlaps(other) for one, other in combinations(named, 2))
    assert not cut(figure)
    for panel in figure.axes:
        box = panel.get_position()
        assert box.width > 0.7 / columns and box.height * figure.get_figheight() > 1
