"""Tests of savings: intervals cover the known truth, and chance alone gives no saving."""

from dataclasses import replace

import numpy as np
import pytest
import synthetic
import synthetic_files

from perseus.results.repeats import (
    dedicated_peaks,
    each_alone,
    group,
    limit_changes,
    sharing_ratio,
    speed_changes,
)
from perseus.results.savings import savings, simultaneous_tail

STUDIES = 100


def study(seed, gain, repeats=10, between=0.02, within=0.02):
    """Return the savings of all load lines of a synthetic study."""
    truth = synthetic.Truth(synthetic.TRUTH.capacities, gain, between, within, repeats)
    records = synthetic.loaded(synthetic.records(truth, seed))
    found = list(group(records, seed=seed, draws=1000).values())
    shared = [peak for peak in found if not peak.is_dedicated]
    alone = each_alone(shared[0], dedicated_peaks(found))
    return savings([sharing_ratio(peak, alone) for peak in shared])


@pytest.fixture(scope="module")
def gaining():
    return [study(seed, gain=1.25) for seed in range(STUDIES)]


@pytest.fixture(scope="module")
def equal():
    return [study(seed, gain=1.0) for seed in range(STUDIES, 2 * STUDIES)]


def test_the_interval_covers_the_true_saving(gaining):
    truth = 1 - 1 / 1.25
    covered = [s.fractional.low <= truth <= s.fractional.high for made in gaining for s in made]
    assert 0.9 <= np.mean(covered) <= 0.995


@pytest.mark.parametrize("between", [0.05, 0.1])
@pytest.mark.parametrize("repeats", [2, 3, 5])
def test_few_repeats_on_hosts_that_wander_cover_it_too(repeats, between):
    made = [study(seed, gain=1.25, repeats=repeats, between=between)[1] for seed in range(STUDIES)]
    covered = [s.fractional.low <= 0.2 <= s.fractional.high for s in made]
    assert np.mean(covered) >= 0.95 - 2.6 * np.sqrt(0.95 * 0.05 / STUDIES)


def test_a_real_saving_is_seen(gaining):
    assert all(s.fractional.low > 0 for made in gaining for s in made)
    assert all(s.probability > 0.999 for made in gaining for s in made)


def test_without_a_saving_most_studies_say_so(equal):
    """Without a true saving, about 2.5 % of the 95 % intervals are above 0 by chance.

    The probability of a saving is then uniformly distributed between 0 and 1.
    """
    above = [s.fractional.low > 0 for made in equal for s in made]
    assert np.mean(above) <= 0.06
    sure = [s.probability > 0.975 for made in equal for s in made]
    assert np.mean(sure) <= 0.06
    assert 0.3 < np.mean([s.probability for made in equal for s in made]) < 0.7


def test_picking_the_best_line_needs_the_correction(equal):
    best = [max(made, key=lambda s: s.fractional.value) for made in equal]
    naive = np.mean([s.fractional.low > 0 for s in best])
    corrected = np.mean([s.simultaneous.low > 0 for s in best])
    assert corrected <= 0.05
    assert corrected <= naive
    assert all(s.simultaneous.low < s.fractional.low for made in equal for s in made)


def test_all_lines_at_once_are_covered(gaining):
    truth = 1 - 1 / 1.25
    together = [all(s.simultaneous.low <= truth <= s.simultaneous.high for s in made)
                for made in gaining]  # fmt: skip
    assert np.mean(together) >= 0.9


def test_correcting_a_single_line_changes_nothing():
    draws = np.random.default_rng(1).normal(size=(1, 4000))
    assert simultaneous_tail(draws) == pytest.approx(0.025, abs=0.001)


def test_correcting_independent_lines_is_like_sidak():
    draws = np.random.default_rng(1).normal(size=(5, 20000))
    assert 2 * simultaneous_tail(draws) == pytest.approx(1 - 0.95 ** (1 / 5), rel=0.1)


def test_a_missing_dedicated_peak_leaves_nothing_to_compare():
    made = synthetic.records()
    made[:2] = [synthetic.with_outcome(r, "infeasible", "too slow") for r in made[:2]]
    rows = synthetic_files.tables_of(made)["savings"].to_pylist()
    assert len(rows) == 5
    assert all(row["saving"] is None for row in rows)
    assert rows[0]["reason"] == "no dedicated peak of resnet18"


def ratios(host, seed, blind=False):
    """Return the sharing ratio of each load line on a host whose speed changes between cells."""
    truth = synthetic.Truth(synthetic.TRUTH.capacities, 1.25, 0.0, 0.02, repeats=1, host=host)
    made = synthetic.records(truth, seed, holds=())
    found = list(group(synthetic.loaded(without_speeds(made) if blind else made), seed=1).values())
    alone = each_alone(found[-1], dedicated_peaks(found))
    return [sharing_ratio(peak, alone).value for peak in found if not peak.is_dedicated]


def without_speeds(made):
    return [record | {"speeds_rps": {}} for record in made]


def test_a_host_that_changes_its_speed_between_cells_does_not_change_the_ratio():
    seeds = range(20)
    calm = np.std([ratios(0.0, seed) for seed in seeds])
    assert np.std([ratios(0.1, seed) for seed in seeds]) < 1.5 * calm
    assert np.std([ratios(0.1, seed, blind=True) for seed in seeds]) > 3 * calm


ONE_REPEAT = synthetic.Truth({"a": 30.0, "b": 90.0}, repeats=1)


def test_how_the_speed_changed_is_told_of_each_tenant():
    found = group(synthetic.loaded(synthetic.records(ONE_REPEAT)), seed=1)
    shared = next(peak for peak in found.values() if not peak.is_dedicated)
    alone = each_alone(shared, dedicated_peaks(list(found.values())))
    slower = replace(
        shared,
        records=tuple(
            record.model_copy(update={"speeds_rps": {"a": (30.0, np.nan), "b": (99.0, 99.0)}})
            for record in shared.records
        ),
    )
    assert speed_changes(shared, alone) == pytest.approx([1, 1])
    assert speed_changes(slower, alone) == pytest.approx([30 / 33, 1])


def test_dedicated_peaks_are_brought_to_the_speed_as_the_limits_of_queues_are():
    """The factor of a dedicated peak is the change of the speed, raised to a power.

    The exponent is the saturation throughput of the tenant alone, divided by its dedicated peak.
    """
    found = group(synthetic.loaded(synthetic.records(ONE_REPEAT, mixes=((1, 1),), holds=())), 1)
    shared = next(peak for peak in found.values() if not peak.is_dedicated)
    alone = each_alone(shared, dedicated_peaks(list(found.values())))

    def seen(peak, **speeds_rps):
        looks = {name: (rps,) * 4 for name, rps in speeds_rps.items()}
        records = tuple(each.model_copy(update={"speeds_rps": looks}) for each in peak.records)
        return replace(peak, records=records)

    a, b = (float(each.rates_rps[0]) for each in alone)
    quick = [seen(alone[0], a=a / 0.9), seen(alone[1], b=b / 0.5)]
    slower = seen(shared, a=0.9 * a / 0.9, b=0.9 * b / 0.5)
    expected = [0.9 ** (1 / 0.9), 0.9 ** (1 / 0.5)]
    assert limit_changes(slower, quick) == pytest.approx(expected)
    parts = shared.rates_rps / [a, b]
    assert sharing_ratio(slower, quick).value == pytest.approx((parts / expected).sum())


def test_one_look_at_the_speed_that_met_a_burst_does_not_decide():
    found = group(synthetic.loaded(synthetic.records(ONE_REPEAT)), seed=1)
    shared = next(peak for peak in found.values() if not peak.is_dedicated)
    alone = each_alone(shared, dedicated_peaks(list(found.values())))
    looks = {"a": (33.0, 16.0, 33.0, 33.0), "b": (99.0, 99.0, 98.0, 100.0)}
    records = tuple(each.model_copy(update={"speeds_rps": looks}) for each in shared.records)
    assert speed_changes(replace(shared, records=records), alone) == pytest.approx([1, 1])


def test_a_tenant_without_load_in_a_mix_needs_no_peak_of_its_own():
    """In the mix 1 : 1 : 0, the third tenant has no load, so its dedicated peak does not matter."""
    three = synthetic.Truth({"a": 30.0, "b": 90.0, "c": 50.0}, gain=0.8, repeats=1)
    made = synthetic.records(three, mixes=((1, 1, 0),), holds=())
    peaks = list(group(synthetic.loaded(made), 1).values())
    alone = each_alone(peaks[-1], dedicated_peaks(peaks))
    found = sharing_ratio(peaks[-1], alone)
    assert found.value == pytest.approx(0.8, rel=0.05)
    assert sharing_ratio(peaks[-1], [*alone[:2], None]).value == found.value
    assert np.isnan(sharing_ratio(peaks[-1], [None, *alone[1:]]).value)


def test_a_tenant_without_load_is_not_what_a_saving_lacks():
    three = synthetic.Truth({"a": 30.0, "b": 90.0, "c": 50.0}, gain=0.8, repeats=1)
    made = synthetic.records(three, mixes=((1, 1, 0), (1, 1, 1)), holds=())
    without_c = [
        synthetic.with_outcome(each, "disturbed", "other_load")
        if each["cell"]["scenario"] == "cpu1.c"
        else each
        for each in made
    ]
    pair, all_three = synthetic_files.tables_of(without_c)["savings"].to_pylist()
    assert pair["reason"] == "" and pair["saving"] is not None
    assert all_three["reason"] == "no dedicated peak of c" and all_three["saving"] is None
