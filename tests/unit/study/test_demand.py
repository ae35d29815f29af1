"""Tests of the demand of a study: accepted and refused values, and the input of the planning."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from perseus.study.demand import interval_rates_rps, rate_shares, request_percentiles
from perseus.study.planning import measure_task, report_task, tables_task
from perseus.study.problems import ConfigError
from perseus.study.read import read_study
from perseus.study.recorded import of_times
from perseus.study.tenant import Tenant

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
    """The trace has a minute each at 1, 10 and 4 requests/s: 60, 600 and 240 requests."""
    times = np.concatenate([start + np.arange(0, 60, 1 / rate) for start, rate in STEPS])
    (tmp_path / "day.txt").write_text("\n".join(f"{time:.3f}" for time in [*times, 180.0]))
    levels = planned(
        {"name": A, "trace": "day.txt"}, folder=tmp_path, percentiles=[0, 30, 100]
    ).levels
    assert [each.rps[A] for each in levels] == pytest.approx([1, 4, 10], rel=0.02)


def test_the_report_tells_what_a_trace_was_read_as(tmp_path):
    (tmp_path / "day.csv").write_text("user,arrival_ms\na,0\nb,50\na,100\n")
    study = asked([{"name": A, "trace": "day.csv"}], tmp_path)
    assert report_task(study, list(study.trace_messages(tmp_path))).traces == (
        "day.csv was read as a CSV file: 3 requests in 0.15 s, 20/s; times of column 'arrival_ms'"
        " in ms",
    )


@pytest.mark.parametrize(
    ("last", "interval_s", "expected"),
    [
        (1e12, 60, "day.txt row 4: '1000000000000.0' is too large for a time in s"),
        (1.1e7, 1, "'day.txt' lasts 170 days, more than 10,000,000 times `interval_s"),
        ("2026-11-25", 60, "'day.txt' lasts 739,944 days, more than"),
    ],
)
def test_a_trace_that_cannot_be_in_seconds_is_refused(last, interval_s, expected, tmp_path):
    first = "0001-01-01\n" * 3 if isinstance(last, str) else "0.5\n0.6\n0.7\n"
    (tmp_path / "day.txt").write_text(f"{first}{last}\n")
    with pytest.raises(ConfigError, match=r"demand\.models\[0\]\.trace: ") as caught:
        asked([{"name": A, "trace": "day.txt"}], tmp_path, interval_s=interval_s)
    assert expected in str(caught.value)


STEPS = ((0, 1), (60, 10), (120, 4))


def test_a_trace_that_is_shorter_than_an_interval_has_its_own_rate():
    """The 101 arrivals cover 10.1 s, since a gap also follows the last arrival."""
    assert interval_rates_rps(of_times(np.linspace(0, 10, 101)), 60.0)[0] == pytest.approx([10.0])


@pytest.mark.parametrize(
    ("times_s", "interval_s", "expected_rps"),
    [
        (np.repeat(np.arange(61.0), 100), 1.0, [100.0] * 61),
        # the trace has counts per second, so the interval of 1.5 s becomes 2 s
        (np.repeat(np.arange(61.0), 100), 1.5, [100.0] * 31),
        (np.arange(120.0), 60.0, [1.0, 1.0]),
        (np.arange(120.0), 50.0, [1.0, 1.0, 1.0]),
        (0.3 + np.arange(10), 1.0, [1.0] * 10),  # as floating-point numbers, 2.3 - 0.3 < 2
        (1.7e9 + 0.1 * np.arange(100), 1.0, [10.0] * 10),
    ],
)
def test_what_comes_at_the_end_of_an_interval_is_of_the_next(times_s, interval_s, expected_rps):
    assert interval_rates_rps(of_times(times_s), interval_s)[0].tolist() == expected_rps


def test_requests_after_the_last_whole_interval_count():
    """The trace ends with 1200 requests in one second, which belong to the last minute."""
    times_s = np.concatenate([np.arange(120.0), np.linspace(130, 131, 1200)])
    rates_rps, requests = interval_rates_rps(of_times(times_s), 60.0)
    assert rates_rps == pytest.approx([1.0, 1.0, (1200 + 48) / 60], rel=0.01)
    assert requests.tolist() == [60, 60, 1200]


@pytest.mark.parametrize(
    ("percentile", "expected_rps"), [(0, 1), (10, 1), (11, 2), (30, 2), (31, 70), (100, 70)]
)
def test_percentiles_count_requests(percentile, expected_rps):
    rates_rps, requests = np.array([0.0, 70, 1, 0, 2, 0]), np.array([0, 70, 10, 0, 20, 0])
    assert request_percentiles(rates_rps, requests, [percentile]) == (expected_rps,)


def test_percentiles_may_be_in_any_order(tmp_path):
    (tmp_path / "day.txt").write_text("0\n1\n2\n3\n3.5\n4\n5\n")
    settings = {"folder": tmp_path, "interval_s": 1}
    trace = {"name": A, "trace": "day.txt"}
    assert planned(trace, percentiles=[100, 50, 0], **settings) == planned(
        trace, percentiles=[0, 50, 100], **settings
    )


BATCHES = {"model": B, "name": "batches", "request_batch_size": 4}


def frontier(*models, tenants=({"model": A}, {"model": B}, BATCHES), folder=ROOT):
    """Return a study that searches three mixes of tenants, with a demand for these models."""
    item = {"name": "three", "servers": ["cpu1"], "tenants": list(tenants)}
    item["experiments"] = [{"kind": "frontier", "points": 3}]
    raw = DEFAULT | {"scenarios": [item]}
    raw |= {"demand": {"models": list(models)}} if models else {}
    return read_study(raw, prices=ROOT / "config" / "prices.csv", folder=folder)


def mixes(study):
    return [cell for name, cell in study.cells.items() if name.startswith("cpu1.three.")]


def shares(*models, **more):
    """Return the share of each tenant in the requests of the demand's mix."""
    first, *others = mixes(frontier(*models, **more))
    assert [cell.run.name for cell in others] == ["frontier-1", "frontier-2"]
    assert first.id == "cpu1.three.mix-demand.r1"
    return first.run.rate_shares


def test_a_frontier_of_three_tenants_has_the_mix_of_the_demand():
    """Two tenants of model B send 20 images/s each.

    One of these tenants sends four images per request.
    """
    assert shares({"name": A, "rps": 25}, {"name": B, "rps": 40}) == (0.5, 0.4, 0.1)


def test_it_has_that_of_the_typical_level():
    rates = {"low_rps": 1, "typical_rps": 25, "peak_rps": 90}
    assert shares({"name": A, **rates}, {"name": B, "rps": 40}) == (0.5, 0.4, 0.1)


def test_it_has_that_of_a_trace(tmp_path):
    (tmp_path / "day.txt").write_text("\n".join(f"{i / 25}" for i in range(25 * 300 + 1)))
    found = shares({"name": A, "trace": "day.txt"}, {"name": B, "rps": 40}, folder=tmp_path)
    assert found == pytest.approx((0.5, 0.4, 0.1))


def test_what_a_demand_does_not_ask_of_a_frontier_changes_nothing():
    def all_tasks(study):
        return [measure_task(study, cell).plain() for cell in study.cells.values()]

    plain = frontier()
    assert [cell.run.name for cell in mixes(plain)] == ["frontier-1", "frontier-2", "frontier-3"]
    none, some = {"name": B, "rps": 0}, {"name": A, "rps": 20}
    off_peak = {"name": B, "low_rps": 0, "typical_rps": 0, "peak_rps": 9}
    for models in ([some], [some, none], [some, off_peak]):
        assert all_tasks(frontier(*models)) == all_tasks(plain)
    two = [{"model": A}, {"model": B}]
    both = frontier(some, {"name": B, "rps": 4}, tenants=two)
    assert all_tasks(both) == all_tasks(frontier(tenants=two))


def test_a_demand_that_is_higher_as_a_whole_is_the_same_mix():
    tenants = [Tenant(model=A), Tenant(model=B), Tenant(model=B, name="another")]
    rates = {A: (0.0, 0.7, 1.0), B: (0.0, 2.3, 9.0)}
    higher = {model: tuple(1.1 * rps for rps in three) for model, three in rates.items()}
    assert rate_shares(tenants, rates) == rate_shares(tenants, higher)
    assert sum(rate_shares(tenants, rates)) == pytest.approx(1)


@pytest.mark.parametrize(
    ("models", "settings", "text"),
    [
        ([{"name": "squeezenet", "rps": 1}], {}, "demand.models[0].name: 'squeezenet' is not a"),
        ([{"name": A}], {}, "demand.models[0]: has no rate (write `rps:`, or `trace:`"),
        ([{"name": A, "rps": 1, "peak_rps": 2}], {}, "demand.models[0]: has several"),
        ([{"name": A, "peak_rps": 2}], {}, "`low_rps:`, `typical_rps:` or `peak_rps:` is missing"),
        (
            [{"name": A, "low_rps": 3, "typical_rps": 2, "peak_rps": 9}],
            {},
            "must have `low_rps` <= `typical_rps` <= `peak_rps`",
        ),
        ([{"name": A, "rps": -1}], {}, "demand.models[0].rps"),
        ([{"name": A, "rps": 0}], {}, "demand.models: no model has a rate above 0"),
        ([{"name": A, "trace": "none.txt"}], {}, "there is no trace file 'none.txt'"),
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
