"""Tests of all figures: data files, marks at the ends of cut intervals, and no empty panels."""

import io
import re
import warnings
import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas as pd
import pytest
import synthetic
import synthetic_files
from drawn import STYLE, figure_of, laid_out
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from perseus.measurement import raw_results
from perseus.report import drawing, plot_marks, sharing_labels, style
from perseus.report.figure_data import COLOURS, DASHES, HATCHES, MARKERS, FigureData
from perseus.report.figures import (
    data_of,
    grid,
    latency_by_rate,
    speed,
    utilisation,
)
from perseus.report.style import panels, short
from perseus.report.svg import compact
from perseus.results.records import PeakRecord

OF_TABLES = ("peaks", "frontier", "costs", "ceilings")
OF_RAW_RESULTS = ("latency_by_rate", "latency_ecdf", "utilisation", "speed")


def results_of(made, folder=None):
    """Return the tables of a study and, with a folder, the raw results of its cells."""
    frames = {name: table.to_pandas() for name, table in synthetic_files.tables_of(made).items()}
    return FigureData(frames, tuple(synthetic_files.write(folder, made)) if folder else ())


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    made = synthetic.with_failures(synthetic.records(synthetic.Truth(synthetic.TRUTH.capacities)))
    return results_of(made, tmp_path_factory.mktemp("failed"))


@pytest.mark.parametrize("name", OF_TABLES)
def test_the_data_of_a_figure_of_tables_are_rows_of_them(name, failed):
    data = data_of(name, failed)
    assert len(data) and any(data is table for table in failed.tables.values())


@pytest.mark.parametrize("name", OF_RAW_RESULTS)
def test_the_data_of_other_figures_are_what_is_drawn(name, failed):
    data, drawn = data_of(name, failed), figure_of(name, failed)
    xs = {
        "latency_by_rate": "all_offered_rps",
        "latency_ecdf": "latency_ms",
        "utilisation": "time_s",
        "speed": "minutes",
    }
    points = {
        round(float(x), 6)
        for panel in drawn.axes
        for line in panel.lines
        for x in np.atleast_1d(line.get_xdata())
    }
    assert len(data) > 10
    assert set(data[xs[name]].round(6)) <= points


def test_the_data_are_written_beside_the_figure(failed, tmp_path):
    made = synthetic.records(mixes=[(1, 1)], holds=())
    results = results_of(made, tmp_path)
    paths = {}
    for name, frame in results.tables.items():
        paths[name] = tmp_path / f"{name}.parquet"
        frame.to_parquet(paths[name])
    files = [tmp_path / f"speed.{kind}" for kind in ("svg", "png", "csv")]
    drawing.draw("speed", paths, results.cells, STYLE, *files)
    written = pd.read_csv(files[2])
    assert list(written["tenant"]) == list(data_of("speed", results)["tenant"])
    ElementTree.parse(files[0])


@pytest.mark.parametrize(
    ("windows", "shown"),
    [
        ("a ab b . b ab a . a ab b", {"a": [0, 6, 8], "b": [2, 4, 10]}),
        ("a ab b . b ab a . a ab b b ab a", {"a": [0, 6, 8, 13], "b": [2, 4, 10, 11]}),
        ("a . a . a a", {"a": [0, 2, 4, 5]}),
    ],
)
def test_a_probe_of_a_shared_cell_is_shown_at_a_window_of_its_tenant_alone(
    windows, shown, tmp_path
):
    """In "a ab b . b", each word is a window: the letters are the tenants with load in a
    saturation probe, and the dot is a window of another phase."""
    truth = synthetic.Truth(dict.fromkeys(shown, 30.0), repeats=1)
    made = synthetic.records(truth, mixes=[(1, 1)] if len(shown) > 1 else (), holds=())[-1]
    count = max(map(len, shown.values()))
    made["speeds_rps"] = {name: np.arange(1.0, count + 1).tolist() for name in shown}
    (cell,) = synthetic_files.write(tmp_path, [made])
    template, *_ = PeakRecord.read(cell).windows()
    rows = [
        template
        | {"window": window, "start_ns": window * 60 * 10**9, "tenant": name}
        | {"phase": "certify" if loaded == "." else "probe", "requests": 9 * (name in loaded)}
        for window, loaded in enumerate(windows.split())
        for name in shown
    ]
    raw_results.write_windows(cell / "windows.parquet", rows)
    looks = speed.data(FigureData({}, (cell,)))
    for name, minutes in shown.items():
        mine = looks[looks["tenant"] == name]
        assert mine["speed_rps"].tolist() == list(range(1, count + 1))
        assert mine["minutes"].tolist() == pytest.approx(minutes)


@pytest.mark.parametrize("looks", [speed.MAX_VECTORS, speed.MAX_VECTORS + 1])
def test_the_looks_of_thousands_of_cells_are_an_image(looks, failed, tmp_path):
    minutes = np.arange(looks) / 7
    told = {"server": "cpu1", "cell": "c", "tenant": failed.names[0], "minutes": minutes}
    with style.drawing(STYLE):
        figure = speed.draw(pd.DataFrame(told).assign(speed_rps=1 + minutes % 2), failed, STYLE)
        style.save(figure, STYLE, tmp_path / "speed.svg", tmp_path / "speed.png")
    assert ("<image" in (tmp_path / "speed.svg").read_text()) == (looks > speed.MAX_VECTORS)


def test_windows_with_an_infinite_percentile_are_marked_at_the_upper_edge(failed):
    windows = data_of("latency_by_rate", failed)
    windows.loc[windows["window"] == 1, "sla_percentile_ms"] = np.inf
    with style.drawing(STYLE), warnings.catch_warnings(action="error"):
        drawn = latency_by_rate.draw(windows, failed, STYLE)
        drawn.draw_without_rendering()
    marks = [line for panel in drawn.axes for line in panel.lines if line.get_marker() == "^"]
    infinite = windows[np.isinf(windows["sla_percentile_ms"])]
    found = sorted(x for line in marks for x in line.get_xdata())
    assert found == sorted(infinite["all_offered_rps"]) and len(found) > 10
    assert {y for line in marks for y in line.get_ydata()} == {1.0}
    assert "infinite" in [text.get_text() for text in drawn.legends[0].get_texts()]


def test_there_are_no_empty_panels_but_words(failed):
    drawn = figure_of("latency_ecdf", failed)
    assert all(panel.lines for panel in drawn.axes)
    assert len(drawn.axes) < len(failed.peaks)
    text = drawn.get_supxlabel()
    assert text.startswith("No data for mix 3 : 1 (infeasible)") and "(failed)" in text


def test_the_lowest_panel_of_each_column_shows_its_ticks():
    figure, axes = panels(STYLE, 5, 2, 40, sharex=True, sharey=True)
    figure.draw_without_rendering()
    shown = [any(tick.label1.get_visible() for tick in a.xaxis.get_major_ticks()) for a in axes]
    assert shown == [False, False, False, True, True]


def test_quantities_without_samples_have_no_panels(failed):
    drawn = figure_of("utilisation", failed)
    titles = [panel.get_ylabel() for panel in drawn.axes[:2]]
    assert titles == ["CPU\n(cores)", "memory\n(GiB)"]
    assert len(drawn.axes) == 2 * utilisation.MAX_CELLS


@pytest.mark.parametrize(
    ("ends", "limit", "reach", "arrow"),
    [
        ((10.0, 9.0, 12.0), 20.0, 12.0, False),
        ((10.0, 9.0, 500.0), 20.0, 20.0, True),
        ((10.0, 9.0, np.inf), 20.0, 13.0, True),
        ((10.0, 9.0, np.inf), 11.0, 11.0, True),
        ((10.0, 9.0, 12.0), 5.0, 10.0, True),
    ],
)
def test_an_interval_that_goes_on_ends_in_an_arrow(ends, limit, reach, arrow):
    for put, axis in ((plot_marks.interval, 0), (plot_marks.upright, 1)):
        axes = Figure().subplots()
        put(axes, 0.0, ends, limit, color="black")
        (bar,) = axes.collections
        assert bar.get_segments()[0][:, axis].max() == pytest.approx(reach)
        heads = [line for line in axes.lines if line.get_marker() in "<>^"]
        assert len(heads) == arrow


def cut_off(results):
    """Give one peak an interval whose upper end is a hundred times the largest estimate."""
    results.tables["peaks"].loc[0, "ci_high_rps"] = 100 * results.peaks["estimate_rps"].max()
    results.tables["peaks"].loc[0, "ci_high_scale"] = 100 * results.peaks["estimate_scale"].max()
    last = results.peaks.index[-1]
    results.tables["peaks"].loc[last, "ci_high_scale"] = (
        50.0 * results.peaks.loc[last, "estimate_scale"]
    )
    return results


def test_a_wide_interval_neither_squeezes_nor_leaves_the_figure():
    results = cut_off(results_of(synthetic.records(mixes=[(1, 1)], holds=())))
    (panel,) = figure_of("peaks", results).axes
    furthest = results.peaks["estimate_rps"].max()
    assert panel.get_xlim()[1] < 2 * furthest
    (head,) = (line for line in panel.lines if line.get_marker() == ">")
    assert furthest < head.get_xdata()[0] < panel.get_xlim()[1]
    (plane,) = figure_of("frontier", results).axes
    heads = [text for text in plane.texts if getattr(text, "arrow_patch", None) is not None]
    ends = np.array([text.xy for text in heads])
    assert len(heads) == 2  # for the tenant alone, and for the mix
    assert (ends <= np.array([plane.get_xlim()[1], plane.get_ylim()[1]]) * 1.001).all()


def test_shared_rates_lie_as_far_beyond_the_line_of_dedicated_servers_as_their_ratio_says():
    """The speed of this host differs between cells, so uncorrected rates would lie elsewhere."""
    truth = synthetic.Truth(synthetic.TRUTH.capacities, repeats=1, host=0.2)
    results = results_of(synthetic.records(truth, mixes=[(1, 1)], holds=()))
    (plane,) = figure_of("frontier", results).axes
    (line,) = (each for each in plane.lines if each.get_linestyle() == "--")
    capacity = np.array([line.get_xdata()[0], line.get_ydata()[1]])
    points = [each.get_xydata()[0] for each in plane.lines if each.get_marker() == "o"]
    (shared,) = (point for point in points if (point > 0).all())
    (row,) = (row for _, row in results.peaks.iterrows() if row["kind"] == "mix")
    assert (shared / capacity).sum() == pytest.approx(row["sharing_ratio"])
    assert abs(shared.sum() / row["estimate_rps"] - 1) > 0.05


def test_more_load_lines_than_a_panel_holds_are_told():
    truth = synthetic.Truth({"a": 30.0, "b": 90.0, "c": 50.0}, repeats=1, bootstraps=20)
    mixes = [(i, j, 1) for i in range(1, 7) for j in range(1, 7)]
    drawn = figure_of("frontier", results_of(synthetic.records(truth, mixes=mixes, holds=())))
    assert drawn.axes[0].get_title(loc="left") == (
        "1 server of type cpu1, $34.7/month: 30 of 36 load lines"
    )
    assert len(drawn.axes[0].get_yticks()) == 30
    assert drawn.get_size_inches()[1] > 6


def test_names_of_three_tenants_leave_room_for_the_words_below():
    capacities = {"squeezenet1_1": 30.0, "mobilenet_v3_small": 90.0, "resnet18": 50.0}
    truth = synthetic.Truth(capacities, repeats=1, bootstraps=20)
    results = results_of(synthetic.records(truth, mixes=[(1, 1, 1), (1, 1, 0)], holds=()))
    with drawing.drawing(STYLE):
        drawn = figure_of("frontier", results)
        drawn.draw_without_rendering()
        (panel,) = drawn.axes
        assert panel.xaxis.label.get_window_extent().x1 <= drawn.bbox.x1


def test_who_shares_stands_beside_the_ratios_of_three_tenants_the_best_on_top():
    """Each tenant with load has a mark, whose area is proportional to the share of the tenant.

    A constant tenant has a hollow mark.
    """
    truth = synthetic.Truth({"a": 30.0, "b": 90.0, "c": 50.0}, repeats=1, bootstraps=20)
    mixes = [(1, 1, 1), (1, 0, 1), (4, 1, 1)]
    results = results_of(synthetic.records(truth, mixes=mixes, holds=[("b", 50)]))
    (panel,) = figure_of("frontier", results).axes
    rows = [label.get_text() for label in panel.get_yticklabels()]
    shared = results.peaks[results.peaks["kind"] != "dedicated"]
    ratios = dict(
        zip([short(row) for _, row in shared.iterrows()], shared["sharing_ratio"], strict=True)
    )
    assert [ratios[row] for row in rows] == sorted(ratios.values(), reverse=True)
    seen = {row: [""] * 3 for row in rows}
    sizes = {row: [0.0] * 3 for row in rows}
    for text in panel.texts:
        if text.get_text() in ("●", "○"):
            row, column = rows[int(text.xy[1])], round(text.xyann[0] / sharing_labels.COLUMN_PT) - 1
            seen[row][column], sizes[row][column] = text.get_text(), text.get_fontsize()
    assert seen == {
        "mix 1 : 1 : 1": ["●", "●", "●"],
        "a 1 : c 1": ["●", "", "●"],
        "mix 4 : 1 : 1": ["●", "●", "●"],
        "b held at 50 %": ["●", "○", "●"],
    }
    large, small, _ = sizes["mix 4 : 1 : 1"]
    assert large == pytest.approx(2 * small)  # twice as wide, so four times the area


def test_the_mix_of_the_demand_is_called_so():
    truth = synthetic.Truth({"a": 30.0, "b": 90.0, "c": 50.0}, repeats=1, bootstraps=20)
    made = synthetic.records(truth, mixes=[(1, 1, 1)], holds=(), rate_shares=(0.5, 0.3, 0.2))
    results = results_of(made)
    (panel,) = figure_of("frontier", results).axes
    rows = [label.get_text() for label in panel.get_yticklabels()]
    assert sorted(rows) == ["mix 1 : 1 : 1", "the demand's mix"]
    told = results.peaks.set_index("load_line").loc["mix-demand"]
    assert told["mix"] == "a 50 % + b 30 % + c 20 % of the demanded requests"
    assert [int(each) for each in told["weights"].split(" : ")] == pytest.approx(
        [70, 14, 17], abs=2
    )
    assert told["sharing_ratio"] == pytest.approx(truth.gain, rel=0.1)


def test_a_demand_without_a_dedicated_peak_has_its_row():
    truth = synthetic.Truth({"a": 30.0, "b": 90.0, "c": 50.0}, repeats=1, bootstraps=20)
    *alone, mix = synthetic.records(truth, mixes=[], holds=(), rate_shares=(0.5, 0.3, 0.2))
    blocked = synthetic.with_outcome(mix, "blocked", "a peak was not found") | {"weights": []}
    results = results_of([*alone, blocked])
    (panel,) = figure_of("frontier", results).axes
    assert panel.texts[0].get_text().strip() == "blocked"
    assert list(results.peaks["weights"])[-1] == ""


def test_tenants_differ_without_colour_and_the_first_two_in_greyscale():
    assert len(set(COLOURS)) == len(COLOURS) == 6
    for looks in (HATCHES, MARKERS, DASHES):
        assert len(set(looks)) == len(looks) == 12
    first, second = (np.dot(to_rgb(colour), (0.299, 0.587, 0.114)) for colour in COLOURS[:2])
    assert abs(first - second) > 0.25


MANY = tuple(f"model_{i}" for i in range(12))


@pytest.fixture(scope="module")
def pairs_of_many():
    """Return two pairs of twelve models on a server with a long name, and each model alone."""
    truth = synthetic.Truth({name: 20.0 + 5 * i for i, name in enumerate(MANY)}, repeats=1)
    made = synthetic.records(truth, mixes=(), holds=())
    for names in (MANY[:2], MANY[6:8]):
        pair = synthetic.Truth({name: truth.capacities[name] for name in names}, repeats=1)
        (mix,) = synthetic.records(pair, mixes=((2, 1),), holds=())[2:]
        scenario = f"cpu1.{'-'.join(names)}"
        task = mix["cell"] | {"scenario": scenario, "cell": f"{scenario}.mix-2-1.r1"}
        made.append(mix | {"cell": task})
    return results_of(made)


def test_more_tenants_than_colours_have_looks_of_their_own(pairs_of_many):
    names = pairs_of_many.names
    assert len(names) == 12
    for look in (pairs_of_many.hatch, pairs_of_many.marker, pairs_of_many.dashes):
        assert len(set(map(look, names))) == 12


@pytest.mark.parametrize("name", ["peaks", "costs", "decomposition"])
def test_load_lines_of_several_groups_are_named_by_their_tenants(name, pairs_of_many):
    (panel,) = figure_of(name, pairs_of_many).axes
    labels = [label.get_text() for label in panel.get_yticklabels()]
    assert len(set(labels)) == len(labels)
    for mix in ("model_0 2 : 1 model_1", "model_6 2 : 1 model_7"):
        assert any(label.startswith(mix) for label in labels)


@pytest.mark.parametrize("name", ["frontier", "latency_by_rate"])
def test_titles_of_panels_beside_each_other_stay_in_the_figure(name, tmp_path):
    truth = synthetic.Truth({"a_long_name_of_a_model": 30.0, "another_name": 90.0}, repeats=1)
    made = synthetic.records(truth, mixes=((1, 1),), holds=())
    long = "a-server-with-a-name-that-is-quite-long"
    made += [synthetic.on_server(record, long, "openvino") for record in made]
    cells = synthetic_files.write(tmp_path, made)
    frames = {
        name: table.to_pandas()
        for name, table in synthetic_files.tables_of(made, two_servers(long)).items()
    }
    with drawing.drawing(STYLE):
        figure = figure_of(name, FigureData(frames, tuple(cells)))
        figure.draw_without_rendering()
        for panel in figure.axes:
            title = panel.title if panel.title.get_text() else panel._left_title
            assert title.get_window_extent().x1 <= figure.bbox.width


def two_servers(name):
    prices = {"cpu1": synthetic.PRICE, name: synthetic.PRICE}
    return synthetic.TASK.model_copy(update={"prices": prices})


def test_names_of_two_servers_do_not_write_over_each_other_beside_their_ceilings(pairs_of_many):
    """The names of the servers do not overlap, even with many tenants in the legend."""
    frames = dict(pairs_of_many.tables)
    frames["ceilings"] = pd.concat([frames["ceilings"]] * 2, ignore_index=True)
    figure = laid_out("ceilings", FigureData(frames))
    first, second = (label.get_window_extent() for label in figure.axes[0].get_yticklabels())
    assert not first.overlaps(second)


def test_fleets_without_an_interval_have_none_in_the_legend():
    asked = synthetic.demand(dict.fromkeys(synthetic.TRUTH.capacities, 20.0))
    task = synthetic.TASK.model_copy(update={"demand": asked})
    made = synthetic.records(synthetic.Truth(synthetic.TRUTH.capacities, repeats=1), holds=())
    frames = {n: table.to_pandas() for n, table in synthetic_files.tables_of(made, task).items()}
    words = [
        text.get_text() for text in figure_of("fleets", FigureData(frames)).legends[0].get_texts()
    ]
    assert words[-1] == "if the capacities were known"
    frames["fleets"][["usd_if_known_low", "usd_if_known_high"]] = np.nan
    words = [
        text.get_text() for text in figure_of("fleets", FigureData(frames)).legends[0].get_texts()
    ]
    assert words == ["dedicated", "sharing allowed"]


SVG_OF_MATPLOTLIB = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">
 <metadata>\n <a/>\n</metadata>
 <g id="figure_1"><g id="mine"><!-- 10 -->
  <path id="DejaVuSans-13"
   d="M 41.401137 130.341918 \nL -0.004 48.570579 \nC 1 2 3 4 5 6 \nz\nM 5.5 6 L 5.5 7"/>
  <use xlink:href="#DejaVuSans-13" transform="translate(10.123456 0)"
   style="stroke: #000000; stroke-width: 0.12345"/>
  <path d="M 0 0 L 3 0" clip-path="url(#p12)"/><clipPath id="p12"/>
 </g></g>
</svg>"""


def test_a_compact_picture_has_the_same_coordinates_and_what_it_refers_to():
    small = compact(SVG_OF_MATPLOTLIB)
    assert 'd="m41.4 130.34l-41.4-81.77c1-46.57 3-44.57 5-42.57zm-35.9-124.34v1"' in small
    assert (
        'id="a0"' in small
        and 'href="#a0" style="stroke:#000000;stroke-width:0.12345" x="10.12"' in small
    )
    assert 'd="m0 0h3" clip-path="url(#a1)"' in small and '<clipPath id="a1" />' in small
    assert 'id="mine"' in small and "figure_1" not in small
    # host.file_formats checks this beginning and this end of a file
    assert small.startswith("<?xml") and small.endswith("</svg>")
    assert "metadata" not in small and "10 --" not in small and "\n" not in small


@pytest.mark.parametrize("name", OF_TABLES)
def test_a_compact_figure_lacks_nothing_that_it_refers_to(name, failed):
    drawn = io.StringIO()
    laid_out(name, failed).savefig(drawn, format="svg")
    small = compact(drawn.getvalue())
    names = re.findall(r' id="([^"]*)"', small)
    assert set(re.findall(r'(?:href="|url\()#([^")]*)', small)) <= set(names)
    assert len(names) == len(set(names)) and small.count("<use") == drawn.getvalue().count("<use")
    assert len(small) < 0.7 * len(drawn.getvalue())


def test_settings_of_a_grid_are_named_by_what_tells_them_apart():
    named = grid.key(["cores 1, instances 1, batch 8", "cores 1, instances 2, batch 8"])
    assert named == ["1  instances 1", "2  instances 2", "all: cores 1, batch 8"]
    assert grid.key(["runtime openvino"]) == ["1  runtime openvino"]
    assert grid.key(["instances 1", "instances 2"]) == ["1  instances 1", "2  instances 2"]
