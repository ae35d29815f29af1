"""Tests of the overview: remaining time of a run, and known peaks."""

import json
import os
import time

import pytest

from perseus.measurement.progress.overview import (
    AloneCell,
    KnownPeaks,
    Overview,
    RunPlan,
    overview,
    write_plan,
)
from perseus.study.slots import LOCAL

STARTED_S = 1000.0


@pytest.fixture
def run(tmp_path):
    """Return the folder of logs of a run with three cells, and a function that ends a cell."""
    plan = RunPlan(
        started_s=STARTED_S,
        load_s={"a.r1": 60.0, "a.r2": 60.0, "shared.r1": 90.0},
        slots=dict.fromkeys(("a.r1", "a.r2", "shared.r1"), LOCAL),
        raw=str(tmp_path / "raw"),
        alone=(
            AloneCell(cell="a.r1", tenant="a", server="cpu1"),
            AloneCell(cell="a.r2", tenant="a", server="cpu1"),
            AloneCell(cell="b.r1", tenant="b", server="cpu1"),
        ),
    )
    write_plan(tmp_path / "logs", plan)

    def end(cell, at_s, **record):
        path = tmp_path / "raw" / cell / "record.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record))
        os.utime(path, (at_s, at_s))

    return tmp_path / "logs", end


def test_a_cell_of_this_run_that_has_ended_is_not_left(run):
    logs, end = run
    end("b.r1", STARTED_S - 500, estimate_scale=40.0, certified_scale=None)
    end("a.r2", STARTED_S - 500, estimate_scale=98.0, certified_scale=90.0)
    end("a.r1", STARTED_S + 70, estimate_scale=100.0, certified_scale=91.0)
    assert overview(logs, "a.r2") == Overview(
        number=2,
        total=3,
        later_s=90.0,
        peaks=(
            KnownPeaks("a", "cpu1", (100.0, 98.0), (91.0, 90.0)),
            KnownPeaks("b", "cpu1", (40.0,), ()),
        ),
    )


def test_at_the_start_nothing_is_known(run):
    logs, _ = run
    assert overview(logs, "a.r1") == Overview(
        1, 3, 150.0, (KnownPeaks("a", "cpu1"), KnownPeaks("b", "cpu1"))
    )


@pytest.mark.parametrize(
    ("cell", "position", "left_s", "later_left_s"),
    [
        ("here.r1", (1, 1), 10 + 300, 5 + 300),  # no other cell runs beside a cell of this machine
        ("far.r1", (1, 2), 300 + 40, 299 + 40),  # the other host needs more time
        ("near.r1", (1, 2), 10 + 150 + 40, 5 + 150 + 40),
    ],
)
def test_cells_of_several_remote_hosts_are_measured_at_the_same_time(
    tmp_path, monkeypatch, cell, position, left_s, later_left_s
):
    plan = RunPlan(
        started_s=STARTED_S,
        load_s={
            "here.r1": 40.0,
            "far.r1": 60.0,
            "far.r2": 60.0,
            "near.r1": 150.0,
            "near.r2": 150.0,
        },
        slots={
            "here.r1": LOCAL,
            "far.r1": "remote_far",
            "far.r2": "remote_far",
            "near.r1": "remote_near",
            "near.r2": "remote_near",
        },
        raw=str(tmp_path / "raw"),
        alone=(),
    )
    write_plan(tmp_path, plan)
    monkeypatch.setattr(time, "time", lambda: 2000.0)
    found = overview(tmp_path, cell)
    assert (found.number, found.total) == position and found.hosts == 3
    assert found.left_s(10.0, 2000.0) == left_s
    assert found.left_s(5.0, 2001.0) == later_left_s


def test_without_a_plan_that_names_the_cell_there_is_no_overview(run, tmp_path):
    assert overview(run[0], "another.r1") is None
    assert overview(tmp_path, "a.r1") is None
    (run[0] / "run.json").write_text("{")
    assert overview(run[0], "a.r1") is None
