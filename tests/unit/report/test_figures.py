"""Tests that every figure shows any result of a study, is not blank, and is reproducible."""

import hashlib
from functools import partial
from itertools import combinations

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
import synthetic
import synthetic_files
from drawn import STYLE, figure_of

from perseus.host import parquet
from perseus.host.files import write_json
from perseus.measurement import raw_results
from perseus.report import drawing
from perseus.report.figure_data import COLOURS, FigureData
from perseus.report.figures import (
    FIGURES,
    cost_map,
    data_of,
    figures_of,
    module_of,
)
from perseus.report.figures.latency_ecdf import certified_latency_ms
from perseus.report.style import DARK, NOTHING, remainder, short
from perseus.results import tables
from perseus.results.records import PeakRecord, Record
from perseus.results.study_results import StudyResults
from perseus.study.experiments import OTHER_KINDS


def prepare(folder, made, swept=True):
    """Write raw files and tables, and return the paths of both."""
    cells = synthetic_files.write(folder, made)
    write_json(folder / "ceilings/cpu1.json", synthetic.ceiling())
    if swept:
        cells += [write(folder) for write in synthetic_files.OF_KIND.values()]
    asked = synthetic.demand(dict.fromkeys(made[-1]["dedicated_rps"], 3.0))
    task = synthetic.TASK.model_copy(update={"demand": asked})
    read = StudyResults.read(task, cells, [folder / "ceilings/cpu1.json"])
    paths = {}
    for name, table in synthetic_files.all_tables(read).items():
        paths[name] = folder / f"{name}.parquet"
        parquet.write(table, paths[name], folder / f"{name}.csv")
    return paths, cells


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    made = synthetic.with_failures(synthetic.records())
    return prepare(tmp_path_factory.mktemp("study"), made)


@pytest.fixture(scope="module")
def barren(tmp_path_factory):
    """Return a study without certified rates and estimates."""
    truth = synthetic.Truth(synthetic.TRUTH.capacities, repeats=1)
    alone, shared = ("infeasible", "too slow"), ("blocked", "no dedicated peaks")
    made = [
        synthetic.with_outcome(r, *(shared if len(r["cell"]["tenants"]) > 1 else alone))
        for r in synthetic.records(truth, mixes=[(1, 1)], holds=())
    ]
    return prepare(tmp_path_factory.mktemp("barren"), made)


@pytest.fixture(scope="module")
def survivors(tmp_path_factory):
    """Return a study with open intervals for every kind of load line."""
    made = synthetic.records()
    for line, outcome in (
        ("mix-1-1", "infeasible"),
        ("mix-3-1", "client_limited"),
        ("hold-resnet18-50", "client_limited"),
        ("peak", "unsteady"),
    ):
        made = synthetic.with_lost(made, line, outcome)
    return prepare(tmp_path_factory.mktemp("survivors"), made, swept=False)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """Return a study with three tenants and more load lines and cells than the figures can show."""
    truth = synthetic.Truth({"a": 30.0, "b": 90.0, "c": 50.0}, repeats=1, bootstraps=20)
    mixes = [(n, 1, 1) for n in range(1, 12)]
    return prepare(
        tmp_path_factory.mktemp("crowded"),
        synthetic.records(truth, mixes=mixes, holds=()),
        swept=False,
    )


@pytest.fixture(scope="module")
def two_presets(tmp_path_factory):
    """Return dedicated peaks of two presets, one for each scenario."""
    made = synthetic.with_two_presets(repeats=1)
    return prepare(tmp_path_factory.mktemp("two_presets"), made, swept=False)


def ink(png):
    """Return the share of pixels that are not white."""
    return float(np.mean(matplotlib.image.imread(png)[..., :3].min(axis=2) < 0.95))


def of_kind(cells, kind):
    return [cell for cell in cells if Record.read(cell).task.run.kind == kind]


def draw(name, study, folder):
    paths, cells = study[0], of_kind(study[1], FIGURES[name].kind)
    svg, png, csv = (folder / f"{name}.{kind}" for kind in ("svg", "png", "csv"))
    drawing.draw(name, paths, cells, STYLE, svg, png, csv)
    return svg, png


def test_a_study_has_the_figures_of_its_kinds_of_experiments():
    everything = {"peak", *OTHER_KINDS, "grid", "demand", "prices", "choice", "servers", "mixes"}
    everything.add("preprocessing")
    assert figures_of(everything) == tuple(FIGURES)
    others = {*OTHER_KINDS, "grid", "fleets", "break_even", "cost_map", "servers", "predictions"}
    others |= {"preprocessing", "costs"}
    assert set(FIGURES) - set(figures_of({"peak"})) == others


def test_each_figure_is_a_module():
    assert all(callable(module_of(name).draw) and module_of(name).CAPTION for name in FIGURES)


# "crowded", "two_presets" and "survivors" have only cells that search peaks. With "survivors", the
# test also makes the figures of other kinds of cells, which the study lacks.
DRAWN = [(name, kind) for kind in ("study", "barren", "survivors") for name in FIGURES] + [
    (name, kind) for kind in ("crowded", "two_presets") for name in figures_of({"peak"})
]


@pytest.mark.parametrize(("name", "kind"), DRAWN)
def test_a_figure_shows_something(name, kind, request, tmp_path):
    _, png = draw(name, request.getfixturevalue(kind), tmp_path)
    assert ink(png) > 0.01, "does tests/synthetic_files.py write what it draws?"


def on_one_server(lines):
    """Return the results for load lines, given the lower limits of the models on each load line.

    Scenarios whose names have one letter are dedicated.
    """
    line = {"server": "cpu1", "load_line": "x", "preset": "quick"}
    peaks = [
        line | {"scenario": name, "kind": "dedicated" if len(name) == 1 else "mix"}
        for name in lines
    ]
    points = [
        line | {"scenario": name, "model": model, "lower_rps": rps, "usd_per_month": 35.0}
        for name, models in lines.items()
        for model, rps in models.items()
    ]
    return FigureData({"peaks": pd.DataFrame(peaks), "operating_points": pd.DataFrame(points)})


@pytest.mark.parametrize("copies_rps", [6.0, 20.0])
def test_a_pair_of_models_has_one_map_whatever_the_order_of_its_tenants(copies_rps):
    """A server with two copies of model a is no dedicated server, even if it carries more than a
    server with one copy."""
    lines = {"a": {"a": 10.0}, "copies": {"a": copies_rps}, "b": {"b": 40.0}}
    lines |= {"ab": {"a": 7.0, "b": 28.0}, "ba": {"b": 30.0, "a": 5.0}}
    found = cost_map.data(on_one_server(lines))
    assert len(found) == cost_map.STEPS**2
    assert found["first_rps"].max() == pytest.approx(30, rel=0.01)
    at = found[(found["first_rps"] < 7) & (found["second_rps"] < 28)]
    assert set(zip(at["shared"], at["dedicated"], strict=True)) == {(1, 2)}
    at = found[found["first_rps"].between(17.1, 20) & (found["second_rps"] < 28)]
    assert set(at["dedicated"]) == {3} and set(at["shared"]) == {2 if copies_rps == 20 else 3}


def test_pairs_of_models_that_have_no_map_are_counted():
    names = "abcde"
    lines = [(name,) for name in names] + list(combinations(names, 2))
    results = on_one_server({"".join(line): dict.fromkeys(line, 10 / len(line)) for line in lines})
    assert len(cost_map.data(results)) == 6 * cost_map.STEPS**2
    text = figure_of("cost_map", results).get_supxlabel()
    assert text == "4 more pairs of models in operating_points.csv"


@pytest.mark.parametrize("name", ["frontier", "peaks"])
def test_a_figure_is_the_same_each_time(name, study, tmp_path):
    digests = set()
    for folder in ("first", "second"):
        svg, png = draw(name, study, tmp_path / folder)
        digests.add(hashlib.sha256(svg.read_bytes()).hexdigest())
    assert len(digests) == 1
    assert b"<dc:date>" not in svg.read_bytes()
    assert matplotlib.image.imread(png).shape[1] == int(STYLE.width_mm / 25.4 * STYLE.dpi)


def test_a_plane_without_a_dedicated_peak_is_not_drawn_empty(barren, study):
    """If a scenario has no dedicated peak, the figure names the scenario and plots nothing for it.
    If no scenario has dedicated peaks, the figure is empty."""
    frames = frames_with(barren, [])
    assert figure_of("frontier", FigureData(frames)).get_gid() == NOTHING
    other = frames_with(study, [])
    both = {
        name: pd.concat([frames[name].replace({"scenario": {"cpu1.shared": "x"}}), other[name]])
        for name in ("peaks", "tenants", "costs")
    }
    drawn = figure_of("frontier", FigureData(both))
    titles = [panel.get_title("left") for panel in drawn.axes]
    assert titles == ["shared: 1 server of type cpu1, $34.7/month"]
    assert "No data for x" in drawn.get_supxlabel()
    remainder(drawn, 1, 1, "", "", [f"x{i}" for i in range(500)])
    assert drawn.get_supxlabel().endswith("x10, x11, 488 more")


def test_a_figure_says_what_it_leaves_out(crowded):
    frames = {name: pd.read_parquet(path) for name, path in crowded[0].items()}
    drawn = figure_of("latency_by_rate", FigureData(frames, tuple(crowded[1])))
    assert drawn.get_supxlabel().startswith("2 more load lines")


def test_the_sla_of_a_tenant_without_load_is_not_drawn(tmp_path):
    truth = synthetic.Truth({"a": 30.0, "b": 90.0, "c": 50.0}, repeats=1, bootstraps=20)
    paths, cells = prepare(
        tmp_path, synthetic.records(truth, mixes=[(1, 1, 0)], holds=()), swept=False
    )
    results = FigureData(
        {name: pd.read_parquet(path) for name, path in paths.items()}, tuple(cells)
    )
    drawn = module_of("latency_by_rate").data(results)
    assert set(drawn[drawn["load_line"] == "mix-1-1-0"]["tenant"]) == {"a", "b"}


def replays(folder, *records):
    """Return the tables of the figure of replays."""
    made = synthetic_files.write(
        folder,
        synthetic.records(
            synthetic.Truth(
                {name: 30.0 for record in records for name in record["unloaded_p50_ms"]}, repeats=1
            ),
            mixes=(),
            holds=(),
        ),
    )
    cells = [synthetic_files.write_replay(folder, record) for record in records]
    read = StudyResults.read(synthetic.TASK, [*made, *cells], [])
    names = ("tenants", "replay", "attainment", "costs")
    modules = {name: tables.module_of(name) for name in names}
    return FigureData(
        {
            name: parquet.table(list(module.rows(read)), module.SCHEMA.arrow).to_pandas()
            for name, module in modules.items()
        }
    )


def test_replays_are_drawn_for_each_tenant_with_both_phases_and_the_worst_minute(tmp_path):
    drawn = figure_of("replay", replays(tmp_path, synthetic.replay_record()))
    rate, attainment, *others = drawn.axes
    assert len(others) == 2
    assert "shared: sla missed, alone: ok" in rate.get_title(loc="left")
    steps = [line for line in attainment.lines if len(line.get_xdata()) > 100]
    assert [line.get_linestyle() for line in steps] == ["--", "-"]
    assert steps[1].get_ydata()[24] == 0.0 and steps[0].get_ydata()[24] == 1.0
    bars = [line.get_xdata() for line in attainment.lines if line.get_linewidth() == 3]
    assert [list(bar) for bar in bars] == [[0, 60], [0, 60]]
    assert {text.get_text() for text in attainment.texts} == {"85.5 %", "94.7 %"}
    assert {text.get_color() for text in attainment.texts} == {DARK}  # small text needs contrast


def test_shares_of_worst_minutes_are_drawn_over_by_nothing(tmp_path):
    """The labels of two shares near 1 overlap neither each other nor a line of the panel."""
    record = synthetic.replay_record()
    for each in record["offered"]:
        each["within_each_s"] = each["requests_each_s"]
        each["worst_minute"] |= {"within": each["worst_minute"]["requests"] - 3}
    with drawing.drawing(STYLE):
        drawn = figure_of("replay", replays(tmp_path, record))
        drawn.draw_without_rendering()
    for panel in drawn.axes[1::2]:
        shared, alone = (text.get_window_extent() for text in panel.texts)
        assert not shared.overlaps(alone)
        for label in (shared, alone):
            assert not any(line.get_window_extent().overlaps(label) for line in panel.lines)
            assert drawn.bbox.containsx(label.x0) and drawn.bbox.containsx(label.x1)


def test_replays_that_failed_or_are_long_or_many_are_drawn_too(tmp_path):
    failed = synthetic.replay_record() | {"outcome": "failed", "reason": "it died", "offered": []}
    drawn = figure_of("replay", replays(tmp_path / "failed", failed))
    assert "not measured: failed" in [text.get_text() for text in drawn.axes[1].texts]
    long = synthetic.replay_record()
    long["cell"]["run"]["duration_s"] = 600.0
    for each in long["offered"]:
        for name in ("requests_each_s", "within_each_s"):
            each[name] = each[name] * 4
    drawn = figure_of("replay", replays(tmp_path / "long", long))
    assert {len(line.get_xdata()) for line in drawn.axes[1].lines} == {2, 11}
    many = synthetic.replay_record(tuple("abcdefgh"))
    many["unloaded_p50_ms"] = dict.fromkeys("abcdefgh", 5.0)
    drawn = figure_of("replay", replays(tmp_path / "many", many))
    assert len(drawn.axes) == 12 and drawn.get_supxlabel().startswith("2 more tenants of cells")


def test_a_scenario_is_drawn_beside_the_dedicated_peaks_of_its_preset(two_presets):
    frames = {name: pd.read_parquet(path) for name, path in two_presets[0].items()}
    results = FigureData(frames)
    lines = results.peaks[results.peaks["kind"] == "mix"].drop_duplicates("scenario")
    alone = [results.alone(line, "resnet18") for _, line in lines.iterrows()]
    assert [row["load_line"] for row in alone] == ["peak", "peak-standard"]


def test_without_a_ceiling_of_the_client_its_figure_says_so(study):
    frames = {name: pd.read_parquet(path) for name, path in study[0].items()}
    frames["ceilings"] = frames["ceilings"].head(0)
    (axes,) = figure_of("ceilings", FigureData(frames)).axes
    assert [text.get_text() for text in axes.texts] == ["no ceiling of the client was measured"]


def in_batches(record):
    cell = record["cell"] | {"tenants": [record["cell"]["tenants"][0] | {"request_batch_size": 8}]}
    return record | {"cell": cell, "request_bytes": {"b": 8 * 602112.0}}


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (in_batches, [["a"], ["b"]]),
        (synthetic.by_server, [["a"], []]),
        (partial(synthetic.on_server, name="cpu1~runtime-x", runtime="x"), [["a", "b"], []]),
        (partial(synthetic.on_server, name="cpu2", runtime="x"), [["a"], []]),
    ],
    ids=["batches", "encoded images", "runtime", "other server"],
)
def test_a_peak_stands_beside_the_ceiling_of_its_requests(change, shown, study):
    """Two tenants serve the model x. The table has two ceilings of this model: for one image and
    for eight images per request."""
    truth = synthetic.Truth({"a": 30.0, "b": 90.0}, repeats=1)
    one, other = synthetic.records(truth, mixes=(), holds=())
    for record in (one, other):
        record["cell"]["tenants"][0]["model"] = "x"
    made = [one, change(other)]
    frames = {n: table.to_pandas() for n, table in synthetic_files.tables_of(made).items()}
    one = pd.read_parquet(study[0]["ceilings"]).assign(models="w + x")
    eight = one.assign(request_batch_size=8, request_bytes=8 * one["request_bytes"])
    results = FigureData(frames | {"ceilings": pd.concat([one, eight])})
    (panel,) = figure_of("ceilings", results).axes
    marks = {name: results.look(name) for name in results.names}
    found = [
        [
            name
            for line in panel.lines
            for name, look in marks.items()
            if (line.get_ydata()[0], line.get_color()) == (y, look["color"])
        ]
        for y in range(2)
    ]
    assert found == shown


def test_a_tenant_has_one_colour_everywhere(study):
    frames = {name: pd.read_parquet(path) for name, path in study[0].items()}
    results = FigureData(frames)
    assert results.names == list(synthetic.TRUTH.capacities)
    assert len({results.colour(name) for name in results.names}) == 2


def test_the_distribution_is_of_the_requests_that_the_table_counts(study):
    """Table and figure read the same certified window, so counts and percentiles agree."""
    frame = pd.read_parquet(study[0]["tenants"]).dropna(subset="rate_rps").iloc[0]
    folder = next(cell for cell in study[1] if cell.name == frame["cell"])
    latency_ms = certified_latency_ms(PeakRecord.read(folder), frame["tenant"])
    assert len(latency_ms) == frame["requests"]
    assert np.percentile(latency_ms, 50, method="inverted_cdf") == frame["p50_ms"]


@pytest.mark.parametrize(
    ("tenants", "width_mm", "each"), [(2, 160, 2), (6, 160, 2), (12, 160, 1), (12, 60, 0)]
)
def test_a_matrix_has_as_many_texts_as_there_is_room_for(tenants, width_mm, each, tmp_path):
    """A square has a value and an interval, or only a value, or only a colour with a scale."""
    names = [f"a_model_of_long_name_{i}" for i in range(tenants)]
    write_json(tmp_path / "record.json", synthetic.slowdown_record(names))
    style = STYLE.model_copy(update={"width_mm": width_mm})
    panel, *scales = figure_of("slowdown", slowdowns(tmp_path), style).axes
    texts = [text.get_text() for text in panel.texts]
    assert len(texts) == each * tenants**2
    assert len(scales) == (each == 0)
    if each:
        assert texts[0].startswith("1.") or texts[0].startswith("0.9")
        assert panel.texts[each].get_weight() == "bold"  # the second square of a row
        assert panel.texts[0].get_weight() == "normal"  # a square on the diagonal
    assert sum(" to " in text for text in texts) == (tenants**2 if each == 2 else 0)


def test_a_square_without_a_value_says_why_and_one_over_its_sla_is_marked(tmp_path):
    record = synthetic.slowdown_record()
    slow, quick = synthetic.TRUTH.capacities
    for step in record["steps"]:
        if len(step["tenants"]) == 2:
            step["seen"][slow]["completed_ratio"] = 0.5
            step["seen"][quick]["verdict"] = "fail"
    write_json(tmp_path / "record.json", record)
    drawn = figure_of("slowdown", slowdowns(tmp_path))
    texts = [text.get_text() for text in drawn.axes[0].texts]
    assert "infeasible" in texts
    assert [text.endswith("*") for text in texts].count(True) == 1


def slowdowns(folder):
    """Return the tables of the figure of slowdowns for one cell."""
    return FigureData({name: table_of(name, [folder]) for name in ("slowdown", "costs")})


def beside(change=lambda made: None, **which):
    """Return the figure of searches beside background load, for a changed study."""
    made = synthetic.records(mixes=(), holds=()) + synthetic.background_records(**which)
    change(made)
    frames = {n: table.to_pandas() for n, table in synthetic_files.tables_of(made).items()}
    return figure_of("background", FigureData(frames))


def test_a_line_has_a_short_name_that_says_who_stays_at_what():
    made = synthetic.records(mixes=[(3, 1)], holds=[("resnet18", 50)])
    made += synthetic.background_records(percents=(25,), rates_rps=[(6.0,)])
    peaks = synthetic_files.tables_of(made)["peaks"].to_pandas()
    assert [short(row) for _, row in peaks.iterrows()] == [
        "resnet18 alone",
        "mobilenet_v3_large alone",
        "mix 3 : 1",
        "resnet18 held at 50 %",
        "mobilenet_v3_large held at 25 %",
        "mobilenet_v3_large held at 6 requests/s",
        "resnet18 held at 25 %",
        "resnet18 held at 6 requests/s",
    ]


def test_each_searched_tenant_has_its_rates_and_its_shares_side_by_side():
    drawn = beside(rates_rps=[(6.0,)])
    assert len(drawn.axes) == 4
    absolute, normalised = drawn.axes[:2]
    slow, quick = synthetic.TRUTH.capacities
    title = f"{slow} beside {quick}, 1 server of type cpu1, $34.7/month"
    assert absolute.get_title(loc="left") == title
    assert normalised.get_xlabel() == "background load / dedicated peak"
    (x, y), *_ = (line.get_data() for line in absolute.lines if len(line.get_xdata()) == 4)
    assert list(x) == sorted(x) and all(np.diff(y) < 0)  # more background load lowers the peak
    straight = normalised.lines[0]
    assert list(straight.get_xdata()) == [0, 1] and list(straight.get_ydata()) == [1, 0]


def test_points_of_the_2020_study_stand_beside_its_two_models_alone():
    made = synthetic.records(mixes=(), holds=()) + synthetic.background_records()
    frames = {n: table.to_pandas() for n, table in synthetic_files.tables_of(made).items()}
    assert "2020: one P4" not in entries(figure_of("background", FigureData(frames)))
    names = dict(zip(synthetic.TRUTH.capacities, ("inception_v3", "resnet50"), strict=True))
    renamed = {name: frame.replace(names) for name, frame in frames.items()}
    drawn = figure_of("background", FigureData(renamed))
    assert "2020: one P4" in entries(drawn)
    seen = [tuple(line.get_xydata()[0]) for line in drawn.axes[1].lines if line.get_marker() == "^"]
    assert (pytest.approx(147 / 204), pytest.approx(60 / 155)) in seen and len(seen) == 5


def entries(drawn):
    return [text.get_text() for text in drawn.legends[0].get_texts()]


def test_a_search_without_an_estimate_has_words_where_its_point_would_be():
    def without_estimate(made):
        for i, record in enumerate(made):
            if record["cell"]["run"]["name"].endswith("-75"):
                made[i] = synthetic.with_outcome(record, "infeasible", "too slow")

    drawn = beside(without_estimate)
    for panel in drawn.axes:
        assert [text.get_text() for text in panel.texts] == ["infeasible"]
    nothing = beside(
        lambda made: made.__setitem__(
            slice(None), [synthetic.with_outcome(r, "blocked", "no peaks") for r in made]
        )
    )
    assert len(nothing.axes[0].texts) == 3


def on_servers(watts):
    """Return a study with one server per runtime, each with a price and a power."""
    factors = {f"r{i}": 1.0 + 0.4 * i for i in range(len(watts))}
    made = synthetic.grid_records(factors)
    names = list(dict.fromkeys(record["cell"]["server"]["name"] for record in made))
    for record in made:
        record["host_watts"] = watts[names.index(record["cell"]["server"]["name"])]
    prices = {
        name: synthetic.PRICE.model_copy(update={"on_demand_usd_per_hour": 0.05 * (i + 1)})
        for i, name in enumerate(names)
    }
    task = synthetic.TASK.model_copy(update={"prices": prices})
    found = synthetic_files.tables_of(made, task)
    return FigureData({name: table.to_pandas() for name, table in found.items()}), names


def drawn_servers(data):
    """Return the rows of panels: cost, latency and energy."""
    axes = figure_of("servers", data).axes
    columns = len({panel.get_subplotspec().colspan.start for panel in axes})
    return [axes[i : i + columns] for i in range(0, len(axes), columns)]


def marks_of(panel):
    """Return position and colour of the marks of the servers, from top to bottom."""
    marks = [line for line in panel.lines if line.get_marker() in ("o", "s")]
    at = sorted((line.get_ydata()[0], line.get_xdata()[0], line.get_color()) for line in marks)
    return [(x, colour) for _, x, colour in at]


def test_servers_are_weighed_by_cost_latency_and_energy_the_cheapest_first():
    data, names = on_servers([60.0, 50.0, 40.0])
    costs = data.tables["costs"].query("pricing == 'on_demand'")
    rows = drawn_servers(data)
    assert len(rows) == 3  # two models and their mix
    for panels in rows:
        assert [panel.get_ylim() for panel in panels] == [(2.5, -0.5)] * 3
        found = costs[costs["mix"] == panels[0].get_title(loc="left")].set_index("server")
        shown = [label.get_text() for label in panels[0].get_yticklabels()]
        assert shown == list(found.sort_values("usd_per_million_inferences").index)
        assert sorted(shown) == sorted(names)
        for panel, goal in ((panels[0], "usd_per_million_inferences"),
                            (panels[2], "joules_per_inference")):  # fmt: skip
            marks = marks_of(panel)
            assert [x for x, _ in marks] == pytest.approx(list(found.loc[shown, goal]))
            assert marks[int(np.argmin([x for x, _ in marks]))][1] == COLOURS[0]


def test_energy_that_is_not_known_of_all_decides_nothing():
    """A server without a known energy neither beats another server in energy nor is beaten."""
    data, _ = on_servers([60.0, None, 1.0])
    rows = drawn_servers(data)
    assert all(
        [text.get_text().strip() for text in panels[2].texts] == ["not known"] for panels in rows
    )
    nobody, _ = on_servers([None, None, None])
    without = drawn_servers(nobody)
    assert [len(panels) for panels in without] == [2, 2, 2]
    for some, none in zip(rows, without, strict=True):
        assert marks_of(some[0]) == marks_of(none[0])


def test_of_many_models_on_many_servers_those_are_shown_that_there_is_room_for(monkeypatch):
    monkeypatch.setattr(module_of("servers"), "MAX_ROWS", 25)
    data, _ = on_servers([None] * 10)
    crowd = figure_of("servers", data)
    assert crowd.get_supxlabel() == "10 more servers, models and mixes in costs.csv"


def test_many_servers_and_those_without_a_peak_are_told_of():
    data, names = on_servers([None] * 22)
    crowd = figure_of("servers", data)
    assert len(crowd.axes[0].get_yticks()) == 20
    assert crowd.get_supxlabel() == "6 more servers, models and mixes in costs.csv"
    costs = data.tables["costs"]
    costs.loc[costs["server"] == names[0], ["usd_per_million_inferences", "verdict"]] = (
        np.nan, "infeasible"
    )  # fmt: skip
    few = FigureData({**data.tables, "costs": costs[costs["server"].isin(names[:2])]})
    panels = drawn_servers(few)[0]
    assert [text.get_text().strip() for text in panels[0].texts] == ["infeasible"]
    alone = FigureData({**data.tables, "costs": costs[costs["server"] == names[0]]})
    ((axes,),) = drawn_servers(alone)
    assert axes.texts[0].get_text() == "no model and no mix was measured on several servers"


def test_the_figure_of_costs_says_which_part_of_what_is_bought():
    part = {"share": 0.25, "accelerator": "T4:1", "instance": "n1-standard-4"}
    price = synthetic.PRICE.model_copy(update=part)
    task = synthetic.TASK.model_copy(update={"prices": {"cpu1": price}})
    tables = synthetic_files.tables_of(synthetic.records(), task)
    data = FigureData({name: table.to_pandas() for name, table in tables.items()})
    (axes,) = figure_of("costs", data).axes
    title = axes.get_title(loc="left")
    assert title == (
        "1 server of type cpu1, $34.7/month\n"
        "0.25 of n1-standard-4 with T4:1 in us-central1, on-demand"
    )


def test_an_open_end_is_an_arrow():
    def lose(made):
        made[:] = synthetic.with_lost(made, "background-resnet18-50", "client_limited")

    drawn = beside(lose)
    arrows = [line for line in drawn.axes[0].lines if line.get_marker() == "^"]
    assert len(arrows) == 1


def table_of(name, folders):
    results = StudyResults.read(synthetic.TASK, folders, [])
    module = tables.module_of(name)
    return parquet.table(list(module.rows(results)), module.SCHEMA.arrow).to_pandas()


def frames_with(study, folders, *names):
    """Return the tables of a study, in which the tables `names` are made from the cells in
    `folders`."""
    frames = {name: pd.read_parquet(path) for name, path in study[0].items()}
    return frames | {name: table_of(name, folders) for name in names}


def blocked_soaks(folder, count):
    """Return soak cells that never had load."""
    nothing = {"outcome": "blocked", "reason": "no peaks", "readings": [], "rates_rps": {}}
    nothing["rates_rps"] = dict.fromkeys(synthetic.TRUTH.capacities)
    for repeat in range(2, 2 + count):
        record = synthetic.soak_record() | nothing
        name = f"cpu1.shared.soak-40-40.r{repeat}"
        record["cell"] |= {"cell": name, "repeat": repeat}
        write_json(folder / name / "record.json", record)
        raw_results.write_windows(folder / name / "windows.parquet", [])
        yield folder / name


def test_the_drift_of_a_soak_is_drawn_and_that_there_is_none_of_a_blocked_one(study, tmp_path):
    soaked, *blocked = [synthetic_files.write_soak(tmp_path), *blocked_soaks(tmp_path, 1)]
    for cell, words in ((soaked, "grows"), (*blocked, "blocked")):
        results = FigureData(frames_with(study, [cell], "soak"), (cell,))
        drawn = figure_of("soak", results)
        assert words in drawn.axes[1].get_title(loc="left")
        # Two tenants have two latencies each. Each latency has a line of marks and a fitted line.
        assert len(drawn.axes[0].lines) == (8 if cell == soaked else 0)


def test_failed_requests_of_a_soak_are_drawn(study, tmp_path):
    cell = synthetic_files.write_soak(tmp_path)
    synthetic_files.fail_requests(cell, 0.3, first=40)
    results = FigureData(frames_with(study, [cell], "soak"), (cell,))
    drawn = figure_of("soak", results)
    latency, _, _, failed = drawn.axes
    # windows with an infinite percentile have marks at the upper edge, for each tenant
    marked = [line for line in latency.lines if line.get_marker() == "^"]
    assert [len(line.get_xdata()) for line in marked] == [20, 20]
    assert {y for line in marked for y in line.get_ydata()} == {1.0}
    assert "infinite" in [text.get_text() for text in drawn.legends[0].get_texts()]
    assert failed.get_ylabel() == "failed requests (%)"
    assert [max(line.get_ydata()) for line in failed.lines[::2]] == pytest.approx(
        [30.0, 30.0], rel=0.01
    )
    values = data_of("soak", results)
    assert np.isinf(values.loc[values["quantity"] == "p95", "value"]).sum() == 40


def test_a_soak_that_answers_all_has_nothing_infinite(study, tmp_path):
    cell = synthetic_files.write_soak(tmp_path)
    drawn = figure_of("soak", FigureData(frames_with(study, [cell], "soak"), (cell,)))
    assert "infinite" not in [text.get_text() for text in drawn.legends[0].get_texts()]
    assert not [line for line in drawn.axes[0].lines if line.get_marker() == "^"]
    assert drawn.axes[3].get_ylim() == (0.0, 1.0)


def test_soaks_without_room_are_told_of(study, tmp_path):
    cells = [synthetic_files.write_soak(tmp_path), *blocked_soaks(tmp_path, 5)]
    results = FigureData(frames_with(study, cells, "soak"), tuple(cells))
    assert figure_of("soak", results).get_supxlabel() == "2 more cells in soak.csv"


@pytest.mark.parametrize(
    ("answered_rps", "marked"),
    [
        ({1: 20.0, 2: 38.0, 4: 60.0, 8: 66.0, 16: 67.0}, True),
        ({1: 20.0, 2: 40.0, 4: 80.0}, False),  # the knee is above the highest level
        ({1: 20.0, 2: 38.0}, False),  # too few points for a fit
    ],
)
def test_a_knee_is_marked_where_levels_lie_around_it(study, tmp_path, answered_rps, marked):
    cell = synthetic_files.write_scaling(tmp_path, answered_rps)
    frames = frames_with(study, [cell], "concurrency", "knees")
    drawn = figure_of("concurrency", FigureData(frames))
    stars = [line for line in drawn.axes[0].lines if line.get_marker() == "*"]
    assert len(stars) == (2 if marked else 0)
    for star in stars:
        (x,), (y,) = star.get_data()
        assert 38 < x < 66 and y > 0
    (message,) = (text.get_text() for text in drawn.axes[1].texts)
    assert message.startswith("knee\n") == marked
