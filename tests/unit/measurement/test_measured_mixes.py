"""Tests of the choice of the next mix of a frontier."""

import math
from types import SimpleNamespace

import pytest
import synthetic

from perseus.host.files import write_json
from perseus.measurement.experiments.frontier import next_mix
from perseus.measurement.peaks.measured_mixes import measured_mixes
from perseus.measurement.peaks.wanted_peak import wanted_peak
from perseus.measurement.progress.messages import describe_mix
from perseus.study.experiments.frontier import Run
from perseus.study.tasks.measure import MeasureTask


def written(folder, *records):
    paths = [folder / f"{i}.json" for i in range(len(records))]
    for path, record in zip(paths, records, strict=True):
        write_json(path, record)
    return paths


MIX = "mix (ratio of the rates, each in units of its dedicated peak)"
THREE = synthetic.Truth({"a": 10.0, "b": 20.0, "c": 30.0}, repeats=1, between=0.0, within=1e-3)
SHARES = (0.5, 0.3, 0.2)


def of_demand(folder, made):
    """Return the load line and the mix of a cell for the demand SHARES, given the records `made` of
    earlier cells."""
    record = synthetic.records(THREE, mixes=[], holds=(), rate_shares=SHARES)[-1]
    task = MeasureTask.model_validate(record["cell"])
    inputs = SimpleNamespace(dedicated_records=written(folder, *made))
    wanted = wanted_peak(SimpleNamespace(task=task, inputs=inputs), task.run)
    return wanted, describe_mix(task, wanted.run.weights)


def mixes(*weights, repeats=2):
    truth = synthetic.Truth(synthetic.TRUTH.capacities, repeats=repeats)
    made = synthetic.records(truth, mixes=weights, holds=())
    return [each for each in made if each["cell"]["run"]["line"] == "mix"]


def test_repeats_of_a_mix_are_one_point_with_their_mean_and_all_their_draws(tmp_path):
    made = mixes((1, 1), (3, 1))
    first, second = measured_mixes(written(tmp_path, *made))
    assert (first.weights, second.weights) == ((1, 1), (3, 1))
    assert first.ratio.value == pytest.approx(sum(each["estimate_scale"] for each in made[:2]) / 2)
    draws = made[0]["posterior_scales"] + made[1]["posterior_scales"]
    assert min(draws) < first.ratio.low < first.ratio.value < first.ratio.high < max(draws)


def test_a_mix_whose_repeats_found_nothing_is_known_as_such(tmp_path):
    lost = [synthetic.with_outcome(each, "disturbed", "others") for each in mixes((1, 1))]
    (mix,) = measured_mixes(written(tmp_path, *lost))
    assert mix.weights == (1, 1) and math.isnan(mix.ratio.value) and mix.doubt == 1.0


def test_a_repeat_that_the_clients_limited_says_nothing_of_the_doubt(tmp_path):
    first, second = mixes((1, 1))
    low = [scale / 3 for scale in second["posterior_scales"]]
    limited = second | {"outcome": "client_limited", "posterior_scales": low}
    (mix,) = measured_mixes(written(tmp_path, first, limited))
    (alone,) = measured_mixes(written(tmp_path, first))
    assert mix.ratio == alone.ratio


def test_a_point_of_a_frontier_measures_the_mix_that_follows_from_those_before(tmp_path):
    plain = mixes((1, 1), repeats=1)[0]["cell"] | {"run": Run.of_point(2).plain()}
    task = MeasureTask.model_validate(plain)
    earlier = written(tmp_path, *mixes((1, 1)))
    inputs = SimpleNamespace(earlier_records=earlier, dedicated_records=[])
    run = next_mix(SimpleNamespace(task=task, inputs=inputs)).run
    assert run.weights == (1, 3) and run.point == 2
    first, second = task.tenant_names
    assert describe_mix(task, run.weights) == f"{MIX}: {first} 1, {second} 3"


def test_the_weights_of_a_demand_follow_from_the_dedicated_peaks(tmp_path):
    wanted, messages = of_demand(tmp_path, synthetic.records(THREE, mixes=[], holds=()))
    assert wanted.run.rate_shares == SHARES and wanted.blocked == ""
    assert wanted.run.weights == (70, 21, 9)  # 0.05, 0.015 and 0.0067 servers per request/s
    assert messages == f"{MIX}: a 70, b 21, c 9"


def test_a_demand_of_which_a_dedicated_peak_is_not_known_has_no_weights(tmp_path):
    first, *others = synthetic.records(THREE, mixes=[], holds=())
    wanted, output = of_demand(
        tmp_path, [synthetic.with_outcome(first, "disturbed", "others"), *others]
    )
    assert wanted.run.weights == () and output == f"{MIX}: "
    assert "(disturbed)" in wanted.blocked
