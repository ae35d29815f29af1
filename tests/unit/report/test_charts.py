"""Tests of the charts that the browser draws: points of windows and costs."""

import csv
import io
import json
import math
from itertools import pairwise

import browser
import pandas as pd
import pytest
import synthetic
import synthetic_files

from perseus.report import evidence
from perseus.report import page as report_page
from perseus.report.charts import (
    OPEN_END,
    Chart,
    Series,
    of_costs,
    of_frontiers,
    of_samples,
    of_windows,
)
from perseus.report.evidence import read_records, read_samples, read_windows
from perseus.report.numbers import significant
from perseus.study.tasks.report import ReportTask

WINDOWS = pd.DataFrame(
    {
        "cell": ["c"] * 4 + ["d"],
        "window": [1, 1, 2, 2, 1],
        "start_ns": [0, 0, 60e9, 60e9, 900e9],
        "tenant": ["a", "b", "a", "b", "a"],
        "offered_rps": [10.0, 5.0, 20.0, 10.0, 40.0],
        "window_verdict": ["pass", "pass", "fail", "fail", "pass"],
        "sla_percentile_ms": [9.0, 7.0, 90.0, float("inf"), 8.0],
        "sla_ms": [50.0, 40.0, 50.0, 40.0, 50.0],
    }
)


def test_the_search_is_rates_over_the_time_of_each_run_by_verdict():
    search, latency = of_windows(WINDOWS, "l")
    points = {each.name: list(zip(each.x, each.y, strict=True)) for each in search.series}
    assert points == {"fail": [(1.0, 30.0)], "pass": [(0.0, 15.0), (0.0, 40.0)]}
    assert [each.name for each in latency.series] == ["a (SLA 50 ms)", "b (SLA 40 ms)"]
    assert latency.title.endswith("; infinite values, only in the CSV file: 1")
    assert list(latency.series[0].x) == [15.0, 30.0, 40.0]
    assert list(latency.series[1].y) == [7.0, float("inf")]


def test_windows_of_infinite_latency_alone_have_a_chart_and_windows_without_latency_have_none():
    _, latency = of_windows(WINDOWS.assign(sla_percentile_ms=float("inf")), "l")
    assert latency.title.endswith("; infinite values, only in the CSV file: 5")
    assert [len(each.y) for each in latency.series] == [3, 2]
    (search,) = of_windows(WINDOWS.assign(sla_percentile_ms=float("nan")), "l")
    assert search.id == "search-l"


def test_costs_over_the_demand_are_a_series_for_each_option():
    rows = {"models": "a + b", "server": "cpu1", "shared": [False, True], "total_rps": 5.0}
    (chart,) = of_costs(pd.DataFrame(rows | {"usd_per_hour": [0.2, 0.1]}))
    assert [(each.name, each.y) for each in chart.series] == [
        ("cpu1, dedicated", [pytest.approx(146.0)]),
        ("cpu1, sharing allowed", [pytest.approx(73.0)]),
    ]


def test_the_frontier_has_the_rates_of_both_tenants_and_the_line_of_dedicated_servers():
    truth = synthetic.Truth({"a": 30.0, "b": 90.0}, between=0, within=0)
    made = synthetic.records(truth, mixes=[(1, 1)], holds=())
    tables = {name: t.to_pandas() for name, t in synthetic_files.tables_of(made).items()}
    (chart,) = of_frontiers(tables)
    series = {each.name: each for each in chart.series}
    dedicated, estimate = series["dedicated, same cost"], series["estimate"]
    assert list(dedicated.x) == pytest.approx([0, 30]) and list(dedicated.y) == pytest.approx(
        [90, 0]
    )
    assert estimate.names == ["a alone", "b alone", "a 1 : 1 b"]
    assert estimate.x == pytest.approx([30, 0, 1.25 * 15])
    assert estimate.y == pytest.approx([0, 90, 1.25 * 45])
    assert set(series) >= {"certified", "first failing"} and "predicted" not in series
    interval = series["95 % interval"]
    assert interval.look == "intervals"
    assert list(interval.names) == [name for name in estimate.names for _ in range(2)]
    peaks = tables["peaks"].set_index("mix")
    for i, mix in enumerate(("a", "b", "a 1 : 1 b")):
        low, high = (interval.x[2 * i + end] + interval.y[2 * i + end] for end in range(2))
        scaled = estimate.x[i] + estimate.y[i]
        row = peaks.loc[mix]
        assert low / scaled == pytest.approx(row["ci_low_scale"] / row["estimate_scale"])
        assert high / scaled == pytest.approx(row["ci_high_scale"] / row["estimate_scale"])


def test_an_interval_without_an_upper_bound_says_so_and_ends_in_the_frontier():
    made = synthetic.records(synthetic.Truth({"a": 30.0, "b": 90.0}), mixes=[(1, 1)], holds=())
    tables = {name: t.to_pandas() for name, t in synthetic_files.tables_of(made).items()}
    peaks = tables["peaks"]
    peaks[["ci_high_rps", "ci_high_scale"]] = float("inf")
    peaks.loc[peaks["mix"] == "a", ["ci_low_rps", "ci_low_scale"]] = float("nan")
    (chart,) = of_frontiers(tables)
    (interval,) = (each for each in chart.series if each.look == "intervals")
    named = ["no upper bound: b alone", "no upper bound: a 1 : 1 b"]
    assert [*dict.fromkeys(interval.names)] == named and len(interval.names) == 4
    (estimate,) = peaks.loc[peaks["mix"] == "b", "estimate_rps"]
    assert interval.y[1] == pytest.approx(OPEN_END * estimate)


def test_there_is_no_frontier_of_one_tenant():
    made = synthetic.records(synthetic.Truth({"a": 30.0}), mixes=[], holds=())
    tables = {name: t.to_pandas() for name, t in synthetic_files.tables_of(made).items()}
    assert list(of_frontiers(tables)) == []


def three_tenants():
    """Return the tables of two mixes of three tenants; the second mix has the higher ratio."""
    truth = synthetic.Truth({"a": 30.0, "b": 90.0, "c": 50.0}, between=0, within=0.02)
    made = synthetic.records(truth, mixes=[(1, 1, 1), (0, 1, 1)], holds=())
    tables = {name: t.to_pandas() for name, t in synthetic_files.tables_of(made).items()}
    peaks = tables["peaks"].set_index("load_line")
    peaks.loc["mix-1-1-1", "sharing_ratio":"sharing_ratio_high"] *= 0.8
    return {**tables, "peaks": peaks.reset_index()}


def test_of_three_tenants_the_chart_has_the_sharing_ratio_of_each_mix():
    tables = three_tenants()
    peaks = tables["peaks"].set_index("load_line")
    (chart,) = of_frontiers(tables)
    assert chart.labels == [(1, "0 : 1 : 1"), (2, "1 : 1 : 1")]
    assert chart.x == "mix (a : b : c)"
    series = {each.name: each for each in chart.series}
    assert series["dedicated, same cost"].y == (1, 1)
    ordered = peaks.loc[["mix-0-1-1", "mix-1-1-1"]]
    assert series["estimate"].y == tuple(ordered["sharing_ratio"])
    assert series["certified"].y == tuple(ordered["certified_sharing_ratio"])
    assert series["estimate"].names == tuple(ordered["mix"]) and series["estimate"].x == (1, 2)
    interval, ends = series["95 % interval"], ["sharing_ratio_low", "sharing_ratio_high"]
    assert interval.look == "intervals" and interval.x == (1, 1, 2, 2)
    assert interval.y == tuple(ordered[ends].to_numpy().ravel())
    first = ordered.iloc[0]
    low, high = (significant(first[end]) for end in ends)
    assert interval.names[0] == interval.names[1] == f"{first['mix']}: {low} to {high}"


def test_a_ratio_without_an_upper_bound_or_without_an_estimate_is_told_as_such():
    tables = three_tenants()
    peaks = tables["peaks"].set_index("load_line")
    peaks.loc["mix-0-1-1", "sharing_ratio_high"] = float("inf")
    peaks.loc["mix-1-1-1", "verdict"] = "predicted"
    peaks.loc["mix-1-1-1", ["certified_sharing_ratio", "sharing_ratio_low"]] = float("nan")
    tables["peaks"] = peaks.reset_index()
    (chart,) = of_frontiers(tables)
    series = {each.name: each for each in chart.series}
    ratio, mix, low = peaks.loc["mix-0-1-1", ["sharing_ratio", "mix", "sharing_ratio_low"]]
    assert series["estimate"].y == (ratio,) and series["certified"].names == (mix,)
    assert series["95 % interval"].names == (f"{mix}: at least {significant(low)}",) * 2
    assert series["95 % interval"].y == (low, OPEN_END * ratio)
    assert series["predicted"].y == (peaks.loc["mix-1-1-1", "sharing_ratio"],)
    tables["peaks"] = tables["peaks"].assign(sharing_ratio=float("nan"))
    assert list(of_frontiers(tables)) == []


def test_utilisation_is_that_of_server_and_client_in_each_repeat(tmp_path, monkeypatch):
    made = synthetic.records(mixes=[], holds=())
    cells = synthetic_files.write(tmp_path, made)
    records = read_records([cell / "record.json" for cell in cells])
    first, second = [r.task.cell for r in records][:2]
    samples = read_samples(records)
    (chart,) = of_samples(pd.concat([samples[first], samples[second]]), "l")
    assert [s.name for s in chart.series] == [
        "server, r1",
        "client, r1",
        "server, r2",
        "client, r2",
    ]
    assert set(chart.series[1].y) == {0.05} and len(chart.series[0].x) == 75
    monkeypatch.setattr(evidence, "MAX_SAMPLES", 200)
    fewer = read_samples(records)
    assert sum(map(len, fewer.values())) <= 200
    assert fewer[first]["value"].mean() == pytest.approx(samples[first]["value"].mean(), rel=0.05)


def test_numbers_of_a_chart_are_short_and_names_cannot_leave_it():
    values = [float("nan"), float("inf"), -float("inf")]
    series = Series("</script>", [1.23456, 2, 3], values, "#000")
    plain = Chart("c", "t", "x", "y", [series]).json
    assert "<" not in plain
    (read,) = json.loads(plain)["series"]
    assert (read["name"], read["x"], read["y"]) == (
        "</script>",
        [1.235, 2.0, 3.0],
        [None, "inf", "-inf"],
    )


SEGMENTS = """
  const view = page.defaultView;
  const data = [[1, 2, 3, 4], [10, 20, 30, 40]];
  const place = (value, scale) => value + (scale === "y" ? 0.5 : 0);
  const moved = [];
  view.Path2D = class {
    moveTo(...at) { moved.push(["move", ...at]); }
    lineTo(...at) { moved.push(["line", ...at]); }
  };
  view.joinedByName(["p", "q", "p", "q"])({ data, valToPos: place }, 1);
  return moved;
"""


@browser.needs_chromium
def test_the_ends_of_each_interval_are_joined_and_no_others():
    made = synthetic.records(mixes=[(1, 1)], holds=())
    frames = {name: t.to_pandas() for name, t in synthetic_files.tables_of(made).items()}
    page = report_page.render(frames, {}, synthetic.loaded(made))
    moved = browser.look(page, (1100,), SEGMENTS)["asked"]
    lines = [
        (first[1:], second[1:])
        for first, second in pairwise(moved)
        if (first[0], second[0]) == ("move", "line") and first[1:] != second[1:]
    ]
    assert lines == [([1, 10.5], [3, 30.5]), ([2, 20.5], [4, 40.5])]


DRAWN = """
  async function hovered(place, view) {
    const over = place.querySelector(".u-over");
    const { left, top, width } = over.getBoundingClientRect();
    const at = { clientX: left + width - 2, clientY: top + 20 };
    over.dispatchEvent(new view.MouseEvent("mousemove", { bubbles: true, ...at }));
    await new Promise((resume) => setTimeout(resume, 60));
    return [...place.querySelectorAll(".u-legend .u-value")].map((value) => value.textContent);
  }
  const view = page.defaultView;
  for (const part of page.querySelectorAll("details")) part.open = true;
  const found = [];
  for (const place of page.querySelectorAll(".chart")) {
    place.scrollIntoView();
    for (let i = 0; i < 100 && !place.querySelector(".uplot canvas"); i++)
      await new Promise((resume) => setTimeout(resume, 20));
    const link = place.querySelector("a");
    const names = [...place.querySelectorAll(".u-legend .u-label")].map((name) => name.textContent);
    place.querySelectorAll(".u-series th")[1].click();
    found.push({
      id: place.id,
      names,
      drawn: place.querySelectorAll(".uplot canvas").length,
      hidden: place.querySelectorAll(".u-series.u-off").length,
      texts: await hovered(place, view),
      csv: link.hidden ? "" : await (await view.fetch(link.href)).text(),
      file: link.download,
    });
  }
  return found;
"""


@browser.needs_chromium
def test_each_picture_is_drawn_when_it_is_seen_and_offers_its_points_as_csv(tmp_path):
    made = synthetic.records(synthetic.TRUTH, mixes=[(1, 1)], holds=())
    cells = synthetic_files.write(tmp_path, made)
    records = read_records([cell / "record.json" for cell in cells])
    frames = {name: t.to_pandas() for name, t in synthetic_files.tables_of(made).items()}
    seen = read_windows(records), read_samples(records)
    page = report_page.render(frames, {}, records, ReportTask(), *seen)
    found = browser.look(page, (1100,), DRAWN)
    assert found["console"] == []
    by_id = {each["id"]: each for each in found["asked"]}
    assert {"chart-cost-over-demand-1", "chart-search-cpu1.shared.mix-1-1",
            "chart-latency-cpu1.shared.mix-1-1", "chart-cpu-cpu1.shared.mix-1-1",
            "chart-frontier-cpu1.shared"} <= set(by_id)  # fmt: skip
    for each in by_id.values():
        assert (each["drawn"], each["hidden"]) == (1, 1)
        assert each["csv"].startswith('series,point,"') and each["csv"].count("\n") >= 1
        assert all(text != "--" for text in each["texts"]) and any(map(str.strip, each["texts"]))
        assert each["file"] == f"{each['id'].removeprefix('chart-')}.csv"
    costs = by_id["chart-cost-over-demand-1"]
    assert costs["names"][1:] == ["cpu1, dedicated", "cpu1, sharing allowed"]
    points = costs["csv"].splitlines()[1:]
    assert len(points) == len(frames["break_even"])
    assert all(float(value) > 0 for value in costs["texts"])  # for both strategies
    frontier = by_id["chart-frontier-cpu1.shared"]
    assert '"estimate","resnet18 1 : 1 mobilenet_v3_large",' in frontier["csv"]


@browser.needs_chromium
def test_ratios_of_three_tenants_are_drawn_and_the_file_names_the_mixes():
    truth = synthetic.Truth({"a": 30.0, "b": 90.0, "c": 50.0}, repeats=2)
    made = synthetic.records(truth, mixes=[(1, 1, 1), (2, 1, 1), (0, 1, 1)], holds=())
    frames = {name: t.to_pandas() for name, t in synthetic_files.tables_of(made).items()}
    page = report_page.render(frames, {}, synthetic.loaded(made))
    found = browser.look(page, (1100,), DRAWN)
    assert found["console"] == []
    (chart,) = (each for each in found["asked"] if each["id"] == "chart-frontier-cpu1.shared")
    rows = list(csv.reader(io.StringIO(chart["csv"])))
    assert rows[0] == ["series", "point", "mix (a : b : c)", "sharing ratio"]
    peaks = frames["peaks"].set_index("mix")
    estimates = {point: (label, y) for name, point, label, y in rows if name == "estimate"}
    assert len(estimates) == 3
    for mix, (label, ratio) in estimates.items():
        assert float(ratio) == pytest.approx(peaks.loc[mix, "sharing_ratio"], rel=1e-3)
        assert label == peaks.loc[mix, "weights"]
    assert chart["texts"][0] in {label for label, _ in estimates.values()}


@browser.needs_chromium
@pytest.mark.parametrize("are_all", [False, True])
def test_an_infinite_latency_is_in_the_file_and_not_in_the_picture(are_all, tmp_path):
    made = synthetic.records(synthetic.TRUTH, mixes=[], holds=())[:1]
    (cell,) = synthetic_files.write(tmp_path, made)
    records = read_records([cell / "record.json"])
    frames = {name: t.to_pandas() for name, t in synthetic_files.tables_of(made).items()}
    windows = read_windows(records)
    frame = windows[cell.name]
    least_ms = 0 if are_all else frame["sla_percentile_ms"].median()
    frame.loc[frame["sla_percentile_ms"] > least_ms, "sla_percentile_ms"] = float("inf")
    page = report_page.render(frames, {}, records, ReportTask(), windows)
    found = browser.look(page, (1100,), DRAWN)
    assert found["console"] == []
    (chart,) = (each for each in found["asked"] if each["id"].startswith("chart-latency-"))
    _, *rows = csv.reader(io.StringIO(chart["csv"]))
    values = [float(row[3]) for row in rows]
    latency_ms = frame[frame["scale"].notna()]["sla_percentile_ms"]
    assert values == pytest.approx(list(latency_ms), rel=1e-3) and chart["drawn"] == 1
    assert any(map(math.isinf, values)) and all(map(math.isinf, values)) == are_all


ZOOMED = """
  const view = page.defaultView;
  const plots = [];
  const original = view.uPlot;
  view.uPlot = Object.assign(function (...given) {
    plots.push(new original(...given));
    return plots.at(-1);
  }, original);
  const pause = () => new Promise((resume) => setTimeout(resume, 60));
  const ends = ({ scales }) => [scales.x.min, scales.x.max, scales.y.min, scales.y.max];
  for (const part of page.querySelectorAll("details")) part.open = true;
  const found = {};
  for (const place of page.querySelectorAll(".chart")) {
    const drawn = () => plots.find(({ root }) => place.contains(root));
    place.scrollIntoView();
    for (let i = 0; i < 100 && !drawn(); i++) await pause();
    await pause();
    const plot = drawn();
    const over = place.querySelector(".u-over");
    const { left, top, width, height } = over.getBoundingClientRect();
    const event = (name, share, on = over) => {
      const at = { clientX: left + share * width, clientY: top + height / 2 };
      on.dispatchEvent(new view.MouseEvent(name, { bubbles: true, movementX: 9, ...at }));
    };
    const whole = ends(plot);
    event("mousemove", 0.25);
    event("mousedown", 0.25);
    event("mousemove", 0.75);
    await pause();
    event("mouseup", 0.75, page);
    await pause();
    const zoomed = ends(plot);
    event("dblclick", 0.5);
    await pause();
    found[place.id.slice("chart-".length)] = { whole, zoomed, after: ends(plot) };
  }
  return found;
"""


@browser.needs_chromium
def test_a_drag_zooms_into_a_chart_and_a_double_click_zooms_out(tmp_path):
    made = synthetic.records(synthetic.TRUTH, mixes=[(1, 1)], holds=())
    cells = synthetic_files.write(tmp_path, made)
    records = read_records([cell / "record.json" for cell in cells])
    frames = {name: t.to_pandas() for name, t in synthetic_files.tables_of(made).items()}
    page = report_page.render(frames, {}, records, ReportTask(), read_windows(records))
    found = browser.look(page, (1100,), ZOOMED)
    assert found["console"] == []
    assert {"frontier-cpu1.shared", "cost-over-demand-1"} < set(found["asked"])
    for id, seen in found["asked"].items():
        low, high, *y = seen["whole"]
        span = high - low
        middle = [low + 0.25 * span, low + 0.75 * span]
        assert seen["zoomed"][:2] == pytest.approx(middle, abs=0.01 * span), id
        assert seen["after"] == seen["whole"]
        if id.startswith("frontier"):
            assert low == y[0] == seen["zoomed"][2] == 0
