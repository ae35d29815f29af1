"""Tests of the experiments `frontier` and `background`, and of a grid, in the smoke study on a real
Triton."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from live.smoke_study import left_behind, with_more

from perseus.results.check import check

pytestmark = pytest.mark.alone

EXPERIMENTS = [
    {"kind": "frontier", "points": 1},
    {"kind": "background", "search": "squeezenet1_1", "rates_rps": [20]},
]
GRID = {
    "name": "squeezenet1_1",
    "servers": ["cpu1"],
    "tenants": [{"model": "squeezenet1_1"}],
    "grid": {"vary": {"instances": [1, 2]}},
}
MEASURED = [
    "cpu1.squeezenet1_1~instances-2.peak.r1",
    "cpu1.shared.background-squeezenet1_1-at-20rps.r1",
    "cpu1.shared.frontier-1.r1",
]


@pytest.fixture(scope="module")
def added(finished, tmp_path_factory) -> Path:
    """Return the folder of the study, to which the fixture adds EXPERIMENTS and GRID."""
    root = tmp_path_factory.mktemp("searches") / "workflow"
    return with_more(finished[0], root, EXPERIMENTS, [GRID], len(MEASURED))


@pytest.fixture(scope="module")
def results(added) -> Path:
    return added / "results" / "smoke"


@pytest.mark.parametrize("cell", MEASURED)
def test_a_search_finds_a_limit_or_says_why_not(results, cell):
    """Other processes may disturb the measurement, but they must not make the server fail."""
    record = json.loads((results / "raw" / cell / "record.json").read_text())
    assert record["outcome"] not in ("failed", "blocked", "infeasible"), record["reason"]
    assert record["outcome"] != "ok" or record["certified_scale"] > 0
    assert cell in (results / "report.html").read_text()


def test_the_tenant_that_stays_is_offered_its_rate_and_the_other_one_is_searched(results):
    (row,) = pd.read_csv(results / "tables/background.csv").to_dict("records")
    assert (row["searched"], row["background_rps"]) == ("squeezenet1_1", 20)
    assert (results / "figures/background.svg").stat().st_size > 5_000


def test_the_settings_of_a_grid_stand_side_by_side_and_one_is_recommended(results):
    rows = pd.read_csv(results / "tables/grid.csv")
    assert sorted(rows["instances"]) == [1, 2]
    (recommended,) = pd.read_csv(results / "tables/recommendations.csv").to_dict("records")
    assert recommended["settings"] == 2
    assert (results / "figures/grid.svg").stat().st_size > 5_000


def test_nothing_contradicts_and_nothing_is_left(added, results):
    check(results / "tables", {})
    assert left_behind(added) == []
