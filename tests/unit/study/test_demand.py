"""The demand of a study: what is asked, what is refused, and what reaches the planning."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from perseus.study.demand import interval_rates_rps
from perseus.study.planning import tables_task
from perseus.study.problems import ConfigError
from perseus.study.read import read_study

ROOT = Path(__file__).parents[3]
DEFAULT = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
A, B = "squeezenet1_1", "mobilenet_v3_small"


def asked(models, folder=ROOT, **settings):
    raw = DEFAULT | {"demand": {"models": models, **settings}}
    return read_study(raw, prices=ROOT / "config" / "prices.csv", folder=folder)


def planned(*models, **settings):
    return tables_task(asked(list(models), **settings)).demand


def test_a_constant_demand_has_one_level_and_others_three():
    (level,) = planned({"name": A, "rps": 20}).levels
    assert (level.name, level.rps) == ("demand", {A: 20.0})
    rates = {"low_rps": 1, "typical_rps": 5, "peak_rps": 9}
    levels = planned({"name": A, "rps": 20}, {"name": B, **rates}).levels
    assert [(each.name, each.rps[A], each.rps[B]) for each in levels] == [
        ("low", 20, 1),
        ("typical", 20, 5),
        ("peak", 20, 9),
    ]


def test_no_demand_is_none():
    study = read_study(DEFAULT, prices=ROOT / "config" / "prices.csv", folder=ROOT)
    assert tables_task(study).demand is None


def test_the_rates_of_a_trace(tmp_path):
    """A minute at 1, one at 10 and one at 4 requests/s."""
    times = np.concatenate([start + np.arange(0, 60, 1 / rate) for start, rate in STEPS])
    (tmp_path / "day.txt").write_text("\n".join(f"{time:.3f}" for time in [*times, 180.0]))
    levels = planned(
        {"name": A, "trace": "day.txt"}, folder=tmp_path, percentiles=[0, 50, 100]
    ).levels
    assert [each.rps[A] for each in levels] == pytest.approx([1, 4, 10], rel=0.02)


STEPS = ((0, 1), (60, 10), (120, 4))


def test_a_trace_that_is_shorter_than_an_interval_has_its_own_rate():
    assert interval_rates_rps(np.linspace(0, 10, 101), 60.0) == pytest.approx([10.1])


@pytest.mark.parametrize(
    ("models", "settings", "text"),
    [
        ([{"name": "squeezenet", "rps": 1}], {}, "demand.models[0].name: 'squeezenet' is not a"),
        ([{"name": A}], {}, "demand.models[0]: has no rate (give rps:, or low_rps:"),
        ([{"name": A, "rps": 1, "peak_rps": 2}], {}, "demand.models[0]: has several"),
        ([{"name": A, "peak_rps": 2}], {}, "has one or two of low_rps:"),
        (
            [{"name": A, "low_rps": 3, "typical_rps": 2, "peak_rps": 9}],
            {},
            "must have low_rps <= typical_rps <= peak_rps",
        ),
        ([{"name": A, "rps": -1}], {}, "demand.models[0].rps"),
        ([{"name": A, "rps": 0}], {}, "demand.models: ask for nothing"),
        ([{"name": A, "trace": "none.txt"}], {}, "there is no file 'none.txt'"),
        ([{"name": A, "rps": 1}, {"name": A, "rps": 2}], {}, "demand.models"),
        ([{"name": A, "rps": 1}], {"servers": ["cpu9"]}, "demand.servers[0]: 'cpu9' is not a"),
        ([{"name": A, "rps": 1}], {"headroom": 1}, "demand.headroom"),
        ([{"name": A, "rps": 1}], {"percentiles": [5, 50]}, "demand.percentiles"),
        ([{"name": A, "rps": 1}], {"spot": {"largest_share": 2}}, "demand.spot"),
    ],
)
def test_what_is_wrong_is_said(models, settings, text):
    with pytest.raises(ConfigError) as error:
        asked(models, **settings)
    assert text in str(error.value)
