"""Tests of the rounds at saturation: their throughput ratios, and the queue simulated from them."""

import numpy as np
import pytest

from perseus.peak.line_model import LineModel
from perseus.peak.load_line import LoadLine
from perseus.peak.paired import Round, first_come_probability, ratio_at_saturation
from perseus.peak.shared_model import TenantWork, model_limits
from perseus.peak.virtual_queue import VirtualQueue
from perseus.study.sla import Sla
from perseus.traffic.arrivals import Arrivals

NAN = float("nan")


def rounds(ratio, n=12, noise=0.0, seed=0, host=0.0):
    """Return rounds of two tenants, whose throughputs alone are 110 and 250 requests/s.

    The speed of the host changes between rounds.
    """
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        speed = np.exp(rng.normal(0, host))
        rates = np.array([110, 250, 55 * ratio, 125 * ratio])
        a, b, x, y = speed * rates * np.exp(rng.normal(0, noise, 4))
        found.append(Round((a, b), (x, y)))
    return found


def test_a_host_that_changes_its_speed_between_rounds_leaves_the_ratio_alone():
    assert ratio_at_saturation(rounds(0.95, host=0.2)).log == pytest.approx(np.log(0.95), abs=1e-9)


def test_the_error_of_the_ratio_is_what_it_scatters_by():
    found = [ratio_at_saturation(rounds(0.95, noise=0.05, seed=seed)) for seed in range(300)]
    scatter = np.std([each.log for each in found])
    assert np.mean([each.log for each in found]) == pytest.approx(np.log(0.95), abs=0.003)
    # The error comes from only twelve rounds, and therefore includes the factor 1.12: the quantile
    # of Student's t distribution, divided by the normal quantile.
    assert np.median([each.error for each in found]) == pytest.approx(1.12 * scatter, rel=0.15)


def test_a_round_that_a_burst_met_does_not_count():
    quiet = rounds(0.95, noise=0.01)
    burst = [*quiet, Round((110, 250), (20, 40)), Round((30, 250), (52, 119))]
    assert ratio_at_saturation(burst).log == pytest.approx(ratio_at_saturation(quiet).log, abs=0.01)


def test_rounds_without_answers_and_few_rounds_leave_the_ratio_unknown():
    assert ratio_at_saturation([]).error == np.inf
    assert ratio_at_saturation(rounds(0.95, n=2)).error == np.inf
    invalid = [Round((NAN, 250), (50, 120))] * 5
    assert ratio_at_saturation([*invalid, *rounds(0.95, n=2)]).error == np.inf


def test_a_tenant_that_got_no_answer_beside_the_others_leaves_the_round_without_a_ratio():
    """A tenant without load is not part of the ratio."""
    starved = Round((110, 0.5, NAN), (50, NAN, NAN))
    assert np.isnan(starved.ratio) and ratio_at_saturation([starved] * 5).error == np.inf
    assert Round((110, 0.5, NAN), (55, 0.25, NAN)).ratio == pytest.approx(1)


def test_what_tenants_get_beside_each_other_tells_how_the_server_divides_itself():
    works = [1 / 110, 1 / 250]
    equal_parts = [Round((110, 250), (55, 125))] * 6
    equally_many = [Round((110, 250), (76.4, 76.4))] * 6
    assert first_come_probability(equal_parts, works) < 0.01
    assert first_come_probability(equally_many, works) > 0.99
    assert first_come_probability(equal_parts, [0.004, 0.004]) == 0.5


SLAS = (Sla(latency_ms=120), Sla(latency_ms=60))
WORKS_S = (1 / 110, 1 / 250)


def limits(together, interference=1.0, weights=(1.0, 1.0)):
    works = [
        TenantWork(sla, np.full(100, work_s), 0.0)
        for sla, work_s in zip(SLAS, WORKS_S, strict=True)
    ]
    line = LoadLine((0.0, 0.0), tuple(w * c for w, c in zip(weights, (49, 113), strict=True)))
    queue = VirtualQueue.of([np.full(40, 9.0), np.full(40, 4.0)], [120, 60])
    model = LineModel(line, SLAS, Arrivals(), queue)
    return model_limits(model, works, [Round((110, 250), together)] * 6)


def test_alone_a_tenant_has_the_limit_of_a_first_come_first_served_queue():
    """The SLAs of the tenants are p95 within 13.2 and 15 service times.

    In another simulation of 60,000 requests, the limits of M/D/1 with these SLAs are 0.889
    and 0.902 of the saturation throughput.
    """
    alone = limits((55, 125)).alone_rps
    assert alone[0] / 110 == pytest.approx(0.889, abs=0.01)
    assert alone[1] / 250 == pytest.approx(0.902, abs=0.01)


def test_interference_at_saturation_lowers_the_limit_of_the_mix_and_of_nobody_alone():
    without, with_it = limits((55, 125)), limits((55 / 1.1, 125 / 1.1))
    assert with_it.alone_rps == without.alone_rps
    assert with_it.scale < without.scale / 1.08


def test_the_mix_is_divided_as_the_rounds_say():
    """If the models alternate, the faster model waits for the slower model."""
    equal_parts, in_turn = limits((55, 125)), limits((76.4, 76.4))
    assert in_turn.scale < equal_parts.scale
    assert equal_parts.utilisation == pytest.approx(0.85, abs=0.08)


def test_background_load_leaves_the_other_tenant_its_own_core():
    """On a server whose tenants do not slow each other down, the limit of the second tenant is its
    limit alone."""
    works = [
        TenantWork(sla, np.full(100, work_s), 0.0)
        for sla, work_s in zip(SLAS, WORKS_S, strict=True)
    ]
    queue = VirtualQueue.of([np.full(40, 9.0), np.full(40, 4.0)], [120, 60])
    model = LineModel(LoadLine((90.0, 0.0), (0.0, 1.0)), SLAS, Arrivals(), queue)
    found = model_limits(model, works, [Round((110, 250), (110, 250))] * 6)
    assert found.scale == pytest.approx(found.alone_rps[1], rel=0.02)


def test_a_tenant_with_too_few_requests_in_the_simulation_leaves_the_limit_unknown():
    """The first tenant sends one request in 5,000, so the simulation has 24 of its requests."""
    assert np.isnan(limits((55, 125), weights=(1.0, 2170.0)).scale)
    assert np.isfinite(limits((55, 125), weights=(1.0, 20.0)).scale)


def test_without_work_that_was_seen_there_is_no_limit():
    line = LoadLine((0.0, 0.0), (49.0, 113.0))
    model = LineModel(line, SLAS, Arrivals(), VirtualQueue.of([np.ones(1)] * 2, [120, 60]))
    unseen = [TenantWork(sla, np.empty(0), 0.0) for sla in SLAS]
    assert np.isnan(model_limits(model, unseen, []).scale)
