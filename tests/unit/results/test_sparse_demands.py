"""Tests of fleets for models with sparse requests, against plans computed by hand."""

from pathlib import Path

import numpy as np
import pytest
import synthetic
import yaml

from perseus.results.fleets.operating_points import operating_points
from perseus.results.fleets.plans import DEDICATED, plans
from perseus.results.repeats import group
from perseus.study.planning import tables_task
from perseus.study.read import read_study

ROOT = Path(__file__).parents[3]
DEFAULT = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
SPARSE, STEADY = "squeezenet1_1", "mobilenet_v3_small"
CARRIED = synthetic.Truth({SPARSE: 10.0, STEADY: 40.0}, between=0, within=1e-9, repeats=1)
DAY_S, MINUTE_S = 86_400, 60


def burst(start_s: float, length_s: float, rate_rps: float) -> np.ndarray:
    return start_s + np.arange(0, length_s, 1 / rate_rps)


TIMER = [burst(day * DAY_S, 5 * MINUTE_S, 30) for day in range(3)]
"""All requests come at 30/s, in five minutes of each day (0.35 % of the day). One server carries
10/s of the model, so the plan needs three servers."""

TWO_JOBS = [burst(0, 20 * MINUTE_S, 8), burst(DAY_S, MINUTE_S, 40), [2 * DAY_S]]
"""9600 requests come at 8/s, which one server carries. Another 2400 requests, a fifth of all, come
at 40/s, which needs four servers."""

LAST_SECONDS = [[0], burst(DAY_S + 10, 5, 240)]
"""1200 of 1201 requests come in the last five seconds of the trace. The mean rate in this minute is
20/s."""


def planned(folder: Path, times_s: list, **settings) -> dict[str, dict[str, int]]:
    """Return the number of dedicated servers with each model, by level.

    The model STEADY has a constant rate of 20/s, and needs one server.
    """
    (folder / "trace.txt").write_text("\n".join(f"{time:.4f}" for time in np.concatenate(times_s)))
    models = [{"name": SPARSE, "trace": "trace.txt"}, {"name": STEADY, "rps": 20}]
    raw = DEFAULT | {"demand": {"models": models, **settings}}
    study = read_study(raw, prices=ROOT / "config" / "prices.csv", folder=folder)
    records = synthetic.loaded(synthetic.records(CARRIED, 0, mixes=(), holds=()))
    measured = list(group(records, seed=0, draws=400).values())
    points = operating_points(measured, {"cpu1": synthetic.PRICE})
    found = plans(points, tables_task(study).demand)
    return {
        each.level.name: {model: each.servers_with(model) for model in each.models}
        for each in found
        if each.strategy == DEDICATED and not each.why_not
    }


@pytest.mark.parametrize(
    ("times_s", "settings", "expected"),
    [
        (TIMER, {}, {"demand": {SPARSE: 3, STEADY: 1}}),
        (TIMER, {"min_servers": 4}, {"demand": {SPARSE: 4, STEADY: 4}}),
        (
            TWO_JOBS,
            {},
            {
                "low": {SPARSE: 1, STEADY: 1},
                "typical": {SPARSE: 1, STEADY: 1},
                "peak": {SPARSE: 4, STEADY: 1},
            },
        ),
        (
            LAST_SECONDS,
            {"percentiles": [0, 50, 99]},
            {
                "low": {SPARSE: 1, STEADY: 1},
                "typical": {SPARSE: 2, STEADY: 1},
                "peak": {SPARSE: 2, STEADY: 1},
            },
        ),
    ],
    ids=["timer", "timer in four zones", "two jobs", "last seconds"],
)
def test_a_model_with_few_busy_intervals_is_planned_for_them(tmp_path, times_s, settings, expected):
    assert planned(tmp_path, times_s, **settings) == expected
