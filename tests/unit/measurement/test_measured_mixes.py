"""What the next mix of a frontier is chosen by."""

import math
from types import SimpleNamespace

import pytest
import synthetic

from perseus.host.files import write_json
from perseus.measurement.experiments.peak import with_weights
from perseus.measurement.measured_mixes import measured_mixes
from perseus.study.experiments.peak import Run
from perseus.study.tasks.measure import MeasureTask


def written(folder, *records):
    paths = [folder / f"{i}.json" for i in range(len(records))]
    for path, record in zip(paths, records, strict=True):
        write_json(path, record)
    return paths


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
    lost = [synthetic.spoil(each, "disturbed", "others") for each in mixes((1, 1))]
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
    plain = mixes((1, 1), repeats=1)[0]["cell"] | {"run": Run.frontier(2).plain()}
    task = MeasureTask.model_validate(plain)
    said = []
    inputs = SimpleNamespace(earlier_records=written(tmp_path, *mixes((1, 1))))
    cell = SimpleNamespace(task=task, inputs=inputs, say=said.append)
    assert with_weights(cell).weights == (1, 3)
    assert said == ["mix: " + f"{task.tenant_names[0]} 1, {task.tenant_names[1]} 3"]
