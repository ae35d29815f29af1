"""Tests of sharing ratios with a known truth, from inexact searches and exact rounds."""

import numpy as np
import pytest
import synthetic

from perseus.results.paired import paired_peaks
from perseus.results.repeats import dedicated_peaks, each_alone, group, sharing_ratio
from perseus.results.savings import simultaneous_tail

CAPACITIES = {"a": 110.0, "b": 250.0}
SPARE = 1.1
"""Saturation throughput of a tenant alone, divided by its dedicated peak."""

MIXES = ((2, 1), (1, 1), (1, 2))


def study(seed, gain=0.92, model_gain=None, searched=0.08, rounds=8, noise=0.05, mixes=MIXES):
    """Return records of searches whose estimates have the error `searched`.

    In each cell, the queueing model and the rounds have the sharing ratio `model_gain`, by default
    the true ratio. The throughputs in the rounds have the error `noise`.
    """
    model_gain = gain if model_gain is None else model_gain
    truth = synthetic.Truth(CAPACITIES, gain, 0.0, searched, repeats=1)
    rng = np.random.default_rng([seed, 1])
    made = synthetic.records(truth, seed, mixes=mixes, holds=())
    return [_with_rounds(record, model_gain, rounds, noise, rng) for record in made]


def _with_rounds(record, gain, rounds, noise, rng):
    names = list(record["speeds_rps"])
    capacity = np.array([CAPACITIES[name] for name in names])
    model = {"alone_rps": capacity.tolist(), "scale_error": 0.0, "utilisation": 1 / SPARE}
    if len(names) == 1:
        return record | {"model": model | {"scale": float(capacity[0])}}
    start = np.exp(rng.normal(0, 0.01))  # error of the saturation throughput on this server start
    seen = [np.exp(rng.normal(0, noise)) * start for _ in range(rounds)]
    alone = (SPARE * capacity).tolist()
    together = [(SPARE * capacity * gain / 2 * each).tolist() for each in seen]
    mean = float(np.mean(seen))
    parts = np.array(record["line"]["direction_rps"]) / capacity
    return record | {
        "rounds": [{"alone_rps": alone, "together_rps": each} for each in together],
        "model": model | {"scale": float(gain / parts.sum()) * mean**SPARE},
    }


def ratios(records, paired=True):
    peaks = group(synthetic.loaded(records), seed=1)
    peaks = paired_peaks(peaks, seed=1) if paired else peaks
    dedicated = dedicated_peaks(list(peaks.values()))
    shared = [peak for peak in peaks.values() if not peak.is_dedicated]
    return [sharing_ratio(peak, each_alone(peak, dedicated)) for peak in shared]


def test_rounds_make_ratios_several_times_as_sharp_as_searches():
    found = [ratios(study(seed)) for seed in range(40)]
    values = np.array([[ratio.value for ratio in each] for each in found])
    searched = np.array(
        [[r.value for r in ratios(study(seed), paired=False)] for seed in range(40)]
    )
    assert values.mean() == pytest.approx(0.92, abs=0.01)
    assert values.std() < searched.std() / 2.5
    assert mean_width(study(seed) for seed in range(40)) / 2 < 0.065


def test_their_intervals_cover_the_truth():
    made = (ratio for seed in range(60) for ratio in ratios(study(seed)))
    intervals = [ratio.interval() for ratio in made]
    assert np.mean([each.low <= 0.92 <= each.high for each in intervals]) >= 0.93


def test_searches_of_all_mixes_of_a_server_tell_together_whether_the_model_fits():
    """If the queueing model is wrong for one mix, the model is wrong for all mixes of the server.

    Therefore the searches of all mixes together decide whether the model fits.
    """

    def half_width(ratio, tail):
        interval = ratio.interval(tail)
        return (interval.high - interval.low) / 2

    widths = []
    for seed in range(20):
        found = ratios(study(seed))
        tail = simultaneous_tail(np.array([ratio.draws for ratio in found]))
        widths.append(np.mean([half_width(ratio, tail) for ratio in found]))
    assert np.mean(widths) < 0.075


def test_where_the_model_is_wrong_the_searches_decide_and_the_interval_is_wide():
    """The simulated sharing ratio is 1.5, and the true ratio is 0.92. The difference is much larger
    than the errors of the searches."""
    (ratio,) = ratios(study(1, model_gain=1.5, searched=0.03, mixes=((1, 1),)))
    interval = ratio.interval()
    assert interval.low < 0.92 < interval.high < 1.15
    (agreeing,) = ratios(study(1, searched=0.03, mixes=((1, 1),)))
    assert interval.high - interval.low > 1.3 * (agreeing.interval().high - agreeing.interval().low)


def test_a_dedicated_peak_far_from_its_model_makes_the_ratio_less_sure():
    """For example, a server with batching carries more than its sequential responses suggest."""
    made = [study(seed, searched=0.04) for seed in range(6)]
    batching = [
        [
            record | {"model": record["model"] | {"scale": 0.6 * record["model"]["scale"]}}
            if len(record["speeds_rps"]) == 1
            else record
            for record in records
        ]
        for records in made
    ]
    assert mean_width(batching) > 1.3 * mean_width(made)


def mean_width(studies):
    intervals = [ratio.interval() for records in studies for ratio in ratios(records)]
    return np.mean([each.high - each.low for each in intervals])


def test_the_peak_of_the_mix_follows_from_its_ratio():
    """The rates at the peak of the mix, each divided by its dedicated peak, add up to the sharing
    ratio. Therefore the costs agree with the sharing ratio in the report."""
    records = study(5)
    peaks = paired_peaks(group(synthetic.loaded(records), seed=1), seed=1)
    mix = next(peak for peak in peaks.values() if not peak.is_dedicated)
    alone = each_alone(mix, dedicated_peaks(list(peaks.values())))
    capacity = np.array([each.rates_rps[0] for each in alone])
    assert (mix.rates_rps / capacity).sum() == pytest.approx(sharing_ratio(mix, alone).value)
    assert mix.scale == pytest.approx(mix.correction * mix.records[0].estimate_scale)


def test_without_rounds_or_a_limit_nothing_changes():
    records = synthetic.records(synthetic.Truth(CAPACITIES, repeats=1), mixes=MIXES, holds=())
    assert [r.value for r in ratios(records)] == [r.value for r in ratios(records, paired=False)]
    lost = study(1, mixes=((1, 1),))
    lost[-1] = synthetic.with_outcome(lost[-1], "infeasible", "too slow")
    assert np.isnan(ratios(lost)[0].value)
