"""Pictures of the page can be looked into: points of windows and costs, drawn in the browser."""

import json

import browser
import pandas as pd
import pytest
import synthetic
import synthetic_files

from perseus.report import page as report_page
from perseus.report.charts import Chart, Series, of_costs, of_windows
from perseus.report.evidence import read_records, read_windows

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
    assert list(latency.series[0].x) == [15.0, 30.0, 40.0] and list(latency.series[1].y) == [7.0]


def test_costs_over_the_demand_are_a_series_for_each_option():
    rows = {"models": "a + b", "server": "cpu1", "shared": [False, True], "total_rps": 5.0}
    (chart,) = of_costs(pd.DataFrame(rows | {"usd_per_hour": [0.2, 0.1]}))
    assert [(each.name, each.y) for each in chart.series] == [
        ("cpu1, dedicated", [pytest.approx(146.0)]),
        ("cpu1, sharing allowed", [pytest.approx(73.0)]),
    ]


def test_numbers_of_a_chart_are_short_and_names_cannot_leave_it():
    series = Series("</script>", [1.23456], [float("nan")], "#000")
    plain = Chart("c", "t", "x", "y", [series]).json
    assert "<" not in plain
    (read,) = json.loads(plain)["series"]
    assert (read["name"], read["x"], read["y"]) == ("</script>", [1.235], [None])


DRAWN = """
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
    page = report_page.render(frames, {}, records, windows=read_windows(records))
    found = browser.look(page, tmp_path, (1100,), DRAWN)
    assert found["console"] == []
    by_id = {each["id"]: each for each in found["asked"]}
    assert {"chart-cost-over-demand-1", "chart-search-cpu1.shared.mix-1-1",
            "chart-latency-cpu1.shared.mix-1-1"} <= set(by_id)  # fmt: skip
    for each in by_id.values():
        assert (each["drawn"], each["hidden"]) == (1, 1)
        assert each["csv"].startswith('series,"') and each["csv"].count("\n") >= 1
        assert each["file"] == f"{each['id'].removeprefix('chart-')}.csv"
    costs = by_id["chart-cost-over-demand-1"]
    assert costs["names"][1:] == ["cpu1, dedicated", "cpu1, sharing allowed"]
    points = costs["csv"].splitlines()[1:]
    assert len(points) == len(frames["break_even"])
