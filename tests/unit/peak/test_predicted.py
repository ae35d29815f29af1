"""Tests of sharing ratios predicted from dedicated peaks, against known truths."""

from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from scipy import special

from perseus.peak.predicted.ladder import Known, LadderStep, Shared, predicted
from perseus.peak.predicted.left_out import (
    FEWEST,
    Accuracy,
    Out,
    best,
    errors,
    errors_by_step,
    noise_of,
)
from perseus.peak.predicted.solo import Solo, limit_change
from perseus.study.sla import Sla
from perseus.traffic.arrivals import Arrivals

POISSON = Arrivals()


def solo(model="a", work_ms=5.0, sla_ms=50.0, peak_rps=180.0, memory_bytes=8e6):
    return Solo(
        model=model,
        sla=Sla(percentile=95, latency_ms=sla_ms),
        peak_rps=peak_rps,
        busy_rps=1000 / work_ms,
        work_s=np.full(500, work_ms / 1000),
        away_s=0.0,
        memory_bytes=memory_bytes,
    )


def shared(*solos, weights=None):
    return Shared.of(solos, weights or (1,) * len(solos), POISSON)


def alone(of):
    """Return the tenant, whose dedicated peak is its limit alone in a simulated queue."""
    limit = Shared.of([of], [1], POISSON).of_queue
    return solo(of.model, 1000 * of.work_s[0], of.sla.latency_ms, limit * of.peak_rps)


def test_equal_tenants_share_a_queue_as_one_of_them_has_it():
    tenant = alone(solo())
    assert shared(tenant, tenant).of_queue == pytest.approx(1, abs=0.02)
    assert shared(tenant, tenant, weights=(3, 1)).of_queue == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("change", [0.75, 0.9, 1.1, 1.25])
@pytest.mark.parametrize("sla_ms", [50.0, 100.0])
def test_a_limit_changes_with_the_speed_as_that_of_a_queue(sla_ms, change):
    """In M/M/1, the limit is ln 20 / SLA below the saturation throughput; M/D/1 is simulated.

    A limit in proportion to the speed would be wrong by up to 17 % in M/M/1 and 7 % in M/D/1.
    """
    busy_rps, spare_rps = 200.0, np.log(20) * 1000 / sla_ms
    limit_rps = busy_rps - spare_rps
    found_rps = limit_rps * limit_change(change, limit_rps / busy_rps)
    assert found_rps == pytest.approx(change * busy_rps - spare_rps, rel=0.035)
    then, now = (alone(solo(work_ms=5 / speed, sla_ms=sla_ms)) for speed in (1, change))
    found_rps = then.peak_rps * limit_change(change, then.utilisation)
    assert found_rps == pytest.approx(now.peak_rps, rel=0.012)


@pytest.mark.parametrize("change", [0.8, 0.9, 1.1, 1.25])
def test_a_limit_with_hardly_time_to_wait_is_less_far_off_than_in_proportion(change):
    """M/D/1 with an SLA of 1.5 service times has its limit at 9 % of the saturation throughput."""
    then, now = (alone(solo(work_ms=5 / speed, sla_ms=7.5)) for speed in (1, change))
    off = then.peak_rps * limit_change(change, then.utilisation) / now.peak_rps
    in_proportion = then.peak_rps * change / now.peak_rps
    assert abs(np.log(off)) < min(0.26, abs(np.log(in_proportion)))
    assert limit_change(2.5, 0.0) == limit_change(2.5, 1e-9) == 2.5**4


def test_a_limit_above_what_the_busy_server_answers_changes_in_proportion():
    assert limit_change(0.8, 1.2) == limit_change(0.8, 1.0) == limit_change(0.8, np.nan) == 0.8


def test_the_tighter_sla_of_two_ends_the_shared_queue_sooner():
    relaxed, tight = alone(solo(sla_ms=200)), alone(solo("b", sla_ms=25))
    both = shared(relaxed, tight)
    assert tight.peak_rps < relaxed.peak_rps
    # The shared queue carries as many requests/s as the tenant with the tight SLA carries alone.
    total_rps = both.of_queue * (relaxed.peak_rps + tight.peak_rps) / 2
    assert total_rps == pytest.approx(tight.peak_rps, rel=0.02)


def test_utilisations_add_up_to_1_whatever_the_slas():
    both = shared(solo(work_ms=5, peak_rps=100), solo("b", work_ms=2, peak_rps=400))
    # The servers have a utilisation of 50 and 80 %. The mix contains half of each peak.
    assert predicted(LadderStep.UTILISATION, both, []) == pytest.approx(1 / 0.65)


def test_a_tenant_without_load_has_no_part():
    both = shared(solo(), solo("b"), solo("c"), weights=(2, 0, 6))
    assert [each.model for each in both.solos] == ["a", "c"] and both.shares == (0.25, 0.75)


def test_shares_add_up_to_the_median_of_other_mixes_but_not_of_copies():
    mixes = [Known(shared(solo(), solo("b")), ratio) for ratio in (0.8, 0.9, 1.2)]
    copies = Known(shared(solo(), solo()), 0.1)
    assert predicted(LadderStep.SHARES, shared(solo(), solo("b")), [*mixes, copies]) == 0.9
    assert np.isnan(predicted(LadderStep.SHARES, shared(solo(), solo("b")), [copies]))


def test_requests_take_longer_after_those_of_another_as_they_did_after_a_copy():
    a, b = alone(solo()), alone(solo("b", work_ms=3))
    copies = [Known(shared(each, each), shared(each, each).of_queue / 1.1) for each in (a, b)]
    found = predicted(LadderStep.MEMORY, shared(a, b), copies)
    slowed = shared(a, b).of_slowed_queue(np.array([1.1, 1.1]))
    rates = np.array([a.peak_rps, b.peak_rps])
    # The service time is 20 % longer after a request of the other tenant. The other tenant sent the
    # previous request with a probability that equals its share of the total rate.
    exact = shared(a, b).of_slowed_queue(1 + 0.2 * rates[::-1] / rates.sum())
    assert found == pytest.approx(exact, rel=0.02)
    assert slowed < shared(a, b).of_queue / 1.08


def test_a_small_neighbour_drives_out_no_more_than_it_touches():
    big, small = solo(memory_bytes=8e6), solo("b", memory_bytes=2e6)
    assert shared(big, small).after_others == pytest.approx([0.5 * 0.25, 0.5])


def test_without_copies_nothing_is_known_of_caches():
    a, b = solo(), solo("b")
    assert np.isnan(predicted(LadderStep.MEMORY, shared(a, b), [Known(shared(a, b), 0.9)]))


def test_what_was_not_seen_alone_predicts_nothing():
    blind = Solo("a", Sla(percentile=95, latency_ms=50), 100, np.nan, np.empty(0), np.nan, np.nan)
    both = shared(blind, solo("b"))
    assert np.isnan(both.of_utilisation) and np.isnan(both.of_queue)
    assert np.isnan(Shared.of([solo(), solo("b")], [1, 1], None).of_queue)


def accuracy(step, known):
    return best({step: errors_by_step(known)[step]}, noise_of(known))


def test_a_tenant_that_hardly_comes_does_not_tell_how_many_of_its_requests_are_late():
    often, seldom = solo("a", work_ms=1.0, peak_rps=980), solo("b", work_ms=200.0, peak_rps=4)
    for weights in ([99, 1], [1000, 1]):
        rare = shared(often, seldom, weights=weights)
        assert np.isnan(rare.of_queue) and np.isnan(rare.of_processor)
        assert rare.of_utilisation > 0
    even = shared(often, seldom, weights=[1, 1])
    assert even.of_queue > 0 and even.of_processor > 0


def test_a_processor_without_other_mixes_has_no_constant():
    a, b, c = solo(), solo("b"), solo("c")
    assert np.isnan(predicted(LadderStep.PROCESSOR, shared(a, b), []))
    assert predicted(LadderStep.PROCESSOR, shared(a, b), [Known(shared(a, c), 0.9)]) > 0


MODELS = "abcdef"


def pairs(ratio_of):
    """Return all pairs of six models. `ratio_of` gives the measured sharing ratio of each pair."""
    solos = [solo(name, work_ms=2 + i, peak_rps=120) for i, name in enumerate(MODELS)]
    made = [shared(a, b) for i, a in enumerate(solos) for b in solos[i + 1 :]]
    return [Known(each, ratio_of(each)) for each in made]


def test_each_mix_is_predicted_without_itself_its_model_or_its_server():
    known = pairs(lambda each: 0.5 if "a" in each.models else 1.0)
    of_mix = list(errors(LadderStep.SHARES, Out.MIX, "here", {"here": known}))
    assert len(of_mix) == 15
    # Ten of the fifteen pairs do not contain the model a. Whichever pair is left out, the median
    # ratio of the other pairs is 1.
    with_a = [each.error for each in of_mix if "a" in each.shared.models]
    assert with_a == [1.0] * 5
    assert len(list(errors(LadderStep.SHARES, Out.MODEL, "here", {"here": known}))) == 30
    # Nine of the pairs: five with the model a, and four with the model b. Without a, the ratios of
    # the other pairs are 1. Without the second model of a pair, the median ratio is 0.5.
    of_model = list(errors(LadderStep.SHARES, Out.MODEL, "here", {"here": known[:9]}))
    with_a = [each.error for each in of_model if "a" in each.shared.models]
    assert with_a == [1.0, 0.0] * 5
    assert all(
        np.isnan(e.error) for e in errors(LadderStep.SHARES, Out.SERVER, "here", {"here": known})
    )
    there = pairs(lambda each: 2.0)
    of_servers = [
        each
        for server in ("here", "there")
        for each in errors(LadderStep.SHARES, Out.SERVER, server, {"here": known, "there": there})
    ]
    assert {each.error for each in of_servers} == {1.0, 3.0, -0.5}


def test_a_step_that_is_always_off_by_the_same_is_put_right():
    known = pairs(lambda each: 0.9 * each.of_utilisation)
    found = best(errors_by_step(known), 0.0)
    assert found.step is LadderStep.UTILISATION and found.half_width < 1e-6
    assert found.interval(2.0).value == pytest.approx(1.8)


def test_too_few_mixes_state_no_error():
    known = pairs(lambda each: 1.0)
    assert accuracy(LadderStep.SHARES, known[: FEWEST - 1]) is None
    assert accuracy(LadderStep.SHARES, known[:FEWEST]).n == FEWEST
    assert best({}, 0.0) is None  # no prediction model can predict the mix


@pytest.mark.parametrize("n", [4, 15])
def test_nine_of_ten_predictions_lie_within_their_interval(n):
    rng, inside, runs = np.random.default_rng(n), 0, 400
    utilisations = pairs(lambda each: each.of_utilisation)
    for _ in range(runs):
        noisy = partial(rng.lognormal, 0.1, 0.05)
        known = [Known(each.shared, each.ratio * noisy()) for each in utilisations[:n]]
        new = utilisations[n % 15]
        end = accuracy(LadderStep.UTILISATION, known).interval(new.ratio)
        inside += end.low <= new.ratio * noisy() <= end.high
    # The expected coverage is 90 %. The bounds allow two standard errors of 400 runs.
    assert 0.87 <= inside / runs <= 0.93


@pytest.fixture(scope="module")
def unlike():
    """Return pairs of eight dissimilar models, each simulated once."""
    slas_ms = (50, 60, 120, 90, 200, 150, 300, 100)
    each = [
        solo(name, work_ms=2 + 2.5 * i, sla_ms=sla_ms, peak_rps=1)
        for i, (name, sla_ms) in enumerate(zip("abcdefgh", slas_ms, strict=True))
    ]
    solos = [alone(one) for one in each]
    return [shared(a, b) for a, b in combinations(solos, 2)]


def test_a_step_that_is_chosen_for_its_errors_is_not_said_to_be_closer_than_it_is(unlike):
    """If prediction models are equally good, the best one for a few mixes is best by chance."""
    rng, inside = np.random.default_rng(4), []
    for n in (4, 6, 8) * 400:
        measured = [
            Known(unlike[i], 0.85 * rng.lognormal(0, 0.05), 0.005)
            for i in rng.permutation(len(unlike))[: n + 1]
        ]
        *known, new = measured
        found = best(errors_by_step(known), noise_of(known))
        end = found.interval(predicted(found.step, new.shared, known))
        inside.append(end.low <= new.ratio <= end.high)
    # The bound is four standard errors of 1,200 runs below the expected coverage of 90 %. If the
    # interval ignores the choice of the prediction model, the coverage is 85 %.
    assert np.mean(inside) >= 0.865


def test_a_step_that_knows_few_mixes_has_no_part_in_how_far_the_chosen_one_is_off(unlike):
    """Perseus does not choose a prediction model that predicts only three of eight mixes.

    Nor do the errors of this prediction model change the interval of the chosen prediction model.
    """
    known = [
        Known(shared, 0.85 * factor)
        for shared, factor in zip(unlike, (0.7, 1.3, 0.8, 1.25, 0.75, 1.2, 1.3, 0.7), strict=False)
    ]
    alone = {LadderStep.SHARES: errors_by_step(known)[LadderStep.SHARES]}
    few = np.full(len(known), np.nan)
    few[:3] = 0.01, -0.01, 0.0
    beside = best({**alone, LadderStep.MEMORY: few}, 0.0)
    assert beside == best(alone, 0.0) and beside.half_width > 0.4
    hopeless = np.array([-1.0, np.inf, 0.1, -0.1, 0.2, -0.2, 0.1, -0.1])
    assert best({LadderStep.MEMORY: hopeless}, 0.0).n == 6


def test_what_missed_mixes_leave_open_makes_no_draw_surer_than_a_measurement():
    of = Accuracy(LadderStep.SHARES, 10, 0.0, deviation=0.08, noise=0.1, missed=1)
    levels = (np.arange(2000) + 0.5) / 2000
    assert np.array_equal(of.draws(1.0, levels), replace(of, missed=0).draws(1.0, levels))


def test_mixes_that_carried_nothing_are_outside_of_every_interval():
    known = pairs(lambda each: each.of_utilisation)[:12]
    rng = np.random.default_rng(1)
    known = [Known(each.shared, each.ratio * rng.lognormal(0, 0.05)) for each in known]
    off, noise = errors_by_step(known), noise_of(known)
    none, one = best(off, noise), best(off, noise, missed=1)
    # Only 12 of the 13 mixes have an interval. To contain 90 % of the 13 mixes, the interval must
    # contain 97.5 % of the 12 mixes.
    wider = special.stdtrit(11, (1 + 0.9 * 13 / 12) / 2) / special.stdtrit(11, 0.95)
    assert np.log1p(one.half_width) == pytest.approx(wider * np.log1p(none.half_width))
    assert best(off, noise, missed=2) is None


def measured_in_one_hour(mixes, rng, noise=0.1, scatter=0.02):
    """Return the mixes with measurement errors.

    The common error of all mixes has the standard deviation `noise`. The independent error of each
    mix has the standard deviation `scatter`.
    """
    hour = rng.lognormal(0, noise)
    return [
        Known(each.shared, each.ratio * hour * rng.lognormal(0, scatter), noise) for each in mixes
    ]


@pytest.mark.parametrize(("claimed", "enough"), [(True, True), (False, False)])
def test_mixes_of_one_hour_predict_no_better_than_they_are_measured(claimed, enough):
    """The scatter of the mixes does not show their common error."""
    rng, inside, runs = np.random.default_rng(3), 0, 400
    *mixes, new = pairs(lambda each: each.of_utilisation)[:7]
    for _ in range(runs):
        known = measured_in_one_hour(mixes, rng)
        if not claimed:
            known = [replace(each, noise=0.0) for each in known]
        end = accuracy(LadderStep.UTILISATION, known).interval(new.ratio)
        inside += end.low <= new.ratio <= end.high
    assert (inside / runs >= 0.87) == enough


def test_noise_is_that_of_the_usual_mix_of_different_models():
    of_pairs = [
        replace(each, noise=n)
        for each, n in zip(pairs(lambda _: 1)[:3], (0.1, 0.2, 0.9), strict=True)
    ]
    copies = Known(shared(solo(), solo()), 1.0, 0.5)
    assert noise_of([*of_pairs, copies]) == 0.2
    assert np.isnan(noise_of([copies]))


def test_predictions_are_as_good_as_measuring_while_they_scatter_by_no_more_than_two_measurements():
    of = Accuracy(LadderStep.PROCESSOR, 1000, 0.0, deviation=0.14, noise=0.1)
    assert of.is_as_good_as_measuring
    assert not replace(of, deviation=0.15).is_as_good_as_measuring
    # The deviation of the predictions already includes the noise of the measurements.
    assert of.half_width == pytest.approx(np.expm1(1.645 * 0.14), rel=0.01)
    assert replace(of, deviation=0.05).half_width == pytest.approx(np.expm1(0.1645), rel=0.01)


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_draws_have_the_interval_of_the_prediction(noise):
    known = pairs(lambda each: each.of_utilisation * (0.9 if "a" in each.models else 1.1))
    known = [replace(each, noise=noise) for each in known]
    found = accuracy(LadderStep.UTILISATION, known)
    drawn = found.draws(1.5, (np.arange(2000) + 0.5) / 2000)
    end = found.interval(1.5)
    assert np.quantile(drawn, [0.05, 0.5, 0.95]) == pytest.approx(
        [end.low, end.value, end.high], rel=0.01
    )


def test_mixes_with_an_open_end_tell_nothing_of_the_noise():
    first, second = (Known(each.shared, 1.0, 0.1) for each in pairs(lambda _: 1)[:2])
    assert noise_of([first, replace(second, noise=np.inf)]) == 0.1
    assert np.isnan(noise_of([replace(first, noise=np.inf)]))


def test_caches_that_help_copies_make_no_other_request_shorter():
    a, b = solo(), solo("b")
    copies = shared(solo(), solo())
    of_both = predicted(LadderStep.MEMORY, shared(a, b), [Known(copies, 3 * copies.of_queue)])
    assert of_both == pytest.approx(shared(a, b).of_queue)
