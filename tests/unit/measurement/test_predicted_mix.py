"""A mix of a frontier that is not measured, since those before it let predict it."""

from types import SimpleNamespace

import numpy as np
import pytest
import synthetic

from perseus.host.files import write_json
from perseus.measurement.cell import BlockedError
from perseus.measurement.experiments import frontier
from perseus.measurement.peaks import searched_peak
from perseus.peak.outcome import Outcome
from perseus.peak.predicted.left_out import FEWEST
from perseus.study.experiments.frontier import Run
from perseus.study.tasks.measure import MeasureTask

MEASURED = ((1, 1), (1, 3), (3, 1), (1, 7), (7, 1))


def records(deviation=0.01, mixes=MEASURED, repeats=1):
    """Dedicated ones, and those of mixes; their ratios differ from each other by that much."""
    truth = synthetic.Truth(synthetic.TRUTH.capacities, repeats=repeats, within=deviation)
    made = synthetic.records(truth, mixes=mixes, holds=())
    alone = [each for each in made if each["cell"]["run"]["line"] == "dedicated"]
    return alone, [each for each in made if each["cell"]["run"]["line"] == "mix"]


def unlike(by):
    """Those whose estimates differ by much more than their posteriors say."""
    alone, mixes = records()
    factors = np.exp(by * np.array([1, -1, 1, -1, 0]))
    return alone, [
        each
        | {
            "estimate_scale": factor * each["estimate_scale"],
            "posterior_scales": [factor * scale for scale in each["posterior_scales"]],
        }
        for each, factor in zip(mixes, factors, strict=True)
    ]


@pytest.fixture
def cell_of(tmp_path):
    """A function that makes the cell of a frontier's next point."""

    def made(alone, mixes, within_percent=10.0, predict=True):
        def written(kind, each):
            paths = [tmp_path / kind / f"{i}.json" for i in range(len(each))]
            for path, record in zip(paths, each, strict=True):
                write_json(path, record)
            return paths

        run = Run.of_point(len(mixes) + 1, predict=predict, within_percent=within_percent)
        plain = records()[1][0]["cell"] | {"run": run.plain()}
        said = []
        return SimpleNamespace(
            task=MeasureTask.model_validate(plain),
            inputs=SimpleNamespace(
                dedicated_records=written("alone", alone),
                earlier_records=written("mixes", mixes),
                trace=None,
            ),
            raw=SimpleNamespace(requests=SimpleNamespace(windows=0)),
            server_log=tmp_path / "server.log",
            say=said.append,
            said=said,
            own_stream=np.random.default_rng(2),
        )

    return made


@pytest.fixture
def searched(monkeypatch):
    """What is raised where a server would be started."""

    class SearchedError(Exception):
        pass

    def refuse(cell):
        raise SearchedError

    monkeypatch.setattr(searched_peak, "server_under_test", refuse)
    return SearchedError


def test_a_mix_that_others_predict_needs_no_server(cell_of, searched):
    cell = cell_of(*records())
    found = frontier.measure(cell)
    record = found.record
    assert found.outcome is Outcome.PREDICTED and not found.outcome.may_pass
    assert found.outcome.is_answer
    assert record["estimate_scale"] == pytest.approx(synthetic.TRUTH.gain, rel=0.05)
    low, high = np.quantile(record["posterior_scales"], [0.05, 0.95])
    assert 0.9 < low / record["estimate_scale"] < 1 < high / record["estimate_scale"] < 1.1
    assert sum(record["weights"]) > 0 and record["certified_window"] == -1
    assert record["startup_s"] is None and cell.server_log.read_text()
    assert "5 mixes" in record["reason"] and record["reason"] in cell.said[-1]


@pytest.mark.parametrize(
    ("made", "within_percent"),
    [
        (records(deviation=0.2), 10.0),  # they differ by more
        (records(), 1.0),  # more is asked for
        (records(), 2.0),  # than a measurement leaves open
        (records(mixes=MEASURED[:3]), 10.0),  # too few
        (unlike(0.2), None),  # a second measurement would be closer
    ],
)
def test_else_it_is_measured(cell_of, searched, made, within_percent):
    cell = cell_of(*made, within_percent)
    with pytest.raises(searched):
        frontier.measure(cell)
    assert len(made[1]) < FEWEST or "to be measured: B" in cell.said[-1]


def test_where_nothing_is_to_be_predicted_it_is_measured(cell_of, searched):
    with pytest.raises(searched):
        frontier.measure(cell_of(*records(), predict=False))


def test_as_good_as_a_measurement_is_enough_where_nothing_else_is_asked_for(cell_of, searched):
    assert frontier.measure(cell_of(*records(), None)).outcome is Outcome.PREDICTED


def test_predicted_mixes_predict_no_others(cell_of, searched):
    alone, mixes = records()
    told = [each | {"outcome": "predicted"} for each in mixes[:2]]
    with pytest.raises(searched):
        frontier.measure(cell_of(alone, [*told, *mixes[2:]]))


def test_repeats_of_a_mix_count_once(cell_of, searched):
    """Three mixes with two repeats each are three, which are too few."""
    with pytest.raises(searched):
        frontier.measure(cell_of(*records(mixes=MEASURED[:3], repeats=2)))


def test_a_tenant_without_a_dedicated_peak_predicts_nothing(cell_of):
    (first, *others), mixes = records()
    with pytest.raises(BlockedError, match=r"cpu1\.resnet18\.peak\.r1 \(disturbed\)"):
        frontier.measure(cell_of([synthetic.spoil(first, "disturbed", "others"), *others], mixes))
