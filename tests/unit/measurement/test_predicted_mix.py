"""Tests of the mixes of a frontier that Perseus predicts from earlier mixes."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import synthetic

from perseus.host.files import write_json
from perseus.measurement.cell import BlockedError
from perseus.measurement.experiments import frontier
from perseus.measurement.peaks import searched_peak
from perseus.peak.outcome import Outcome
from perseus.peak.predicted.ladder import Shared
from perseus.peak.predicted.left_out import FEWEST
from perseus.peak.predicted.solo import Solo
from perseus.study.experiments.frontier import Run
from perseus.study.sla import Sla
from perseus.study.tasks.measure import MeasureTask
from perseus.traffic.arrivals import Arrivals

MEASURED = ((1, 1), (1, 3), (3, 1), (1, 7), (7, 1))


def records(deviation=0.01, mixes=MEASURED, repeats=1):
    """Return dedicated records and records of mixes. `deviation` is the standard deviation of
    log(peak) from batch to batch."""
    truth = synthetic.Truth(synthetic.TRUTH.capacities, repeats=repeats, within=deviation)
    made = synthetic.records(truth, mixes=mixes, holds=())
    alone = [each for each in made if each["cell"]["run"]["line"] == "dedicated"]
    return alone, [each for each in made if each["cell"]["run"]["line"] == "mix"]


def unlike(by):
    """Return records whose estimates differ by much more than their posteriors explain."""
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
    """Return a function that makes the cell of the next point of a frontier."""

    def made(
        alone, mixes, within_percent=10.0, predict=True, copies=(), copies_alone=(), checks=()
    ):
        def written(kind, each):
            paths = [tmp_path / kind / f"{i}.json" for i in range(len(each))]
            for path, record in zip(paths, each, strict=True):
                write_json(path, record)
            return paths

        run = Run.of_point(len(mixes) + 1, predict=predict, within_percent=within_percent)
        plain = mixes[0]["cell"] | {"run": run.plain()}
        messages = []
        return SimpleNamespace(
            task=MeasureTask.model_validate(plain),
            inputs=SimpleNamespace(
                dedicated_records=written("alone", alone),
                earlier_records=written("mixes", mixes),
                copies_records=written("copies", copies),
                copies_dedicated_records=written("copies_alone", copies_alone),
                checks=checks,
                trace=None,
            ),
            raw=SimpleNamespace(requests=SimpleNamespace(windows=0)),
            server_log=tmp_path / "server.log",
            say=messages.append,
            messages=messages,
            own_stream=np.random.default_rng(2),
        )

    return made


@pytest.fixture
def searched(monkeypatch):
    """Return the error that replaces the start of a server."""

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
    assert found.outcome is Outcome.PREDICTED and not found.outcome.is_temporary
    assert found.outcome.is_result
    assert record["estimate_scale"] == pytest.approx(synthetic.TRUTH.gain, rel=0.05)
    low, high = np.quantile(record["posterior_scales"], [0.05, 0.95])
    assert 0.9 < low / record["estimate_scale"] < 1 < high / record["estimate_scale"] < 1.1
    assert sum(record["weights"]) > 0 and record["certified_window"] == -1
    assert record["startup_s"] is None and cell.server_log.read_text()
    assert "5 measured mixes" in record["reason"] and record["reason"] in cell.messages[-1]


@pytest.mark.parametrize(
    ("made", "within_percent"),
    [
        (records(deviation=0.2), 10.0),  # the sharing ratios differ by more than 10 %
        (records(), 1.0),  # the study asks for more precision
        (records(), 2.0),  # more precise than a measurement
        (records(mixes=MEASURED[:3]), 10.0),  # too few mixes
        (unlike(0.2), None),  # a second measurement would be more precise
    ],
)
def test_else_it_is_measured(cell_of, searched, made, within_percent):
    cell = cell_of(*made, within_percent)
    with pytest.raises(searched):
        frontier.measure(cell)
    assert len(made[1]) < FEWEST or "this mix: the error of prediction model B" in cell.messages[-1]


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


@pytest.mark.parametrize(("infeasible", "measured"), [(0, False), (1, True)])
def test_where_a_mix_carried_nothing_others_are_measured(cell_of, searched, infeasible, measured):
    """No prediction model predicts a mix that missed an SLA.

    One of six mixes is infeasible. Perseus predicts no mix if at least one in ten mixes is
    infeasible.
    """
    alone, mixes = records(mixes=(*MEASURED, (1, 2)))
    failed = [
        synthetic.with_outcome(each, "infeasible", "the SLA fails at every rate tested")
        for each in mixes[:infeasible]
    ]
    cell = cell_of(alone, [*failed, *mixes[infeasible:]], None)
    if measured:
        with pytest.raises(searched):
            frontier.measure(cell)
        assert "1 of the earlier mixes missed an SLA" in cell.messages[-1]
    else:
        assert frontier.measure(cell).outcome is Outcome.PREDICTED


def test_a_prediction_is_never_surer_than_repeats_that_hardly_tell_what_lies_between_them(
    cell_of, searched
):
    """Two repeats leave an uncertainty of about 20 %, as in the tables, even if the mixes agree."""
    made = records(repeats=2)
    with pytest.raises(searched):
        frontier.measure(cell_of(*made, 10.0))
    assert frontier.measure(cell_of(*made, 40.0)).outcome is Outcome.PREDICTED


def test_repeats_of_a_mix_count_once(cell_of, searched):
    """Three mixes with two repeats each count as three mixes. A prediction needs four mixes."""
    with pytest.raises(searched):
        frontier.measure(cell_of(*records(mixes=MEASURED[:3], repeats=2)))


def test_a_tenant_without_a_dedicated_peak_predicts_nothing(cell_of):
    (first, *others), mixes = records()
    with pytest.raises(BlockedError, match=r"cpu1\.resnet18\.peak\.r1 \(disturbed\)"):
        frontier.measure(
            cell_of([synthetic.with_outcome(first, "disturbed", "others"), *others], mixes)
        )


WORK_MS = {"a": 5.0, "b": 8.0, "c": 20.0}
EXCESS = {"a": 1.0, "b": 0.3, "c": 0.05}
"""Relative increase of the service time of a request that follows a request of another model, which
replaces the contents of the caches."""
OF_THREE = ((1, 1, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1))


def solo_of(name):
    """Return a tenant alone in a first-come first-served queue.

    The limit of the queue is the peak of the tenant.
    """
    model = name[0]
    of = Solo(
        model=model,
        sla=Sla(latency_ms=100.0),
        peak_rps=500 / WORK_MS[model],
        busy_rps=1000 / WORK_MS[model],
        work_s=np.full(100, WORK_MS[model] / 1000),
        away_s=0.0,
        memory_bytes=8e6,
    )
    limit = Shared.of([of], [1], Arrivals()).of_queue
    return replace(of, peak_rps=limit * of.peak_rps)


def with_caches(names, weights):
    """Return the sharing ratio of a mix in a simulation with caches."""
    shared = Shared.of([solo_of(name) for name in names], weights, Arrivals())
    excess = np.array([EXCESS[solo.model] for solo in shared.solos])
    return shared.of_slowed_queue(1 + excess * shared.after_others)


def of_world(names, mixes, scenario="cpu1.shared"):
    """Return the records of tenants alone and of their mixes in the simulation with caches."""
    truth = synthetic.Truth({name: solo_of(name).peak_rps for name in names}, repeats=1)
    made = synthetic.records(truth, mixes=mixes, holds=())
    alone, shared = made[: len(names)], made[len(names) :]
    for record in made:
        for tenant in record["cell"]["tenants"]:
            tenant["model"] = tenant["name"][0]
    for record in alone:
        ((name, peak),) = (
            (t["name"], solo_of(t["name"]).peak_rps) for t in record["cell"]["tenants"]
        )
        record["work_ms"] = {name: [WORK_MS[name[0]]] * 100}
        record["unloaded_p50_ms"] = {name: WORK_MS[name[0]]}
        at(record, peak)
    for record, weights in zip(shared, mixes, strict=True):
        record["cell"]["scenario"] = scenario
        at(record, with_caches(names, weights))
    return alone, shared


def at(record, limit):
    factor = limit / record["estimate_scale"]
    record["estimate_scale"] = limit
    record["posterior_scales"] = [factor * scale for scale in record["posterior_scales"]]


@pytest.fixture
def copies(tmp_path):
    """Return records of each model beside its copy, and write the exports of the models."""
    checks, found = [], {"copies": [], "copies_alone": []}
    for model in WORK_MS:
        (_, copy), mixes = of_world((model, f"{model}2"), ((1, 1),), f"cpu1.{model}_twice")
        # A request of the copy evicts all data of the model from the caches.
        found["copies"] += mixes
        found["copies_alone"].append(copy)
        path = tmp_path / "models" / model / "check.json"
        path.parent.mkdir(parents=True)
        write_json(path, {"cost": {"working_set_bytes": 8e6}})
        checks.append(path)
    return {**found, "checks": checks}


def test_copies_tell_what_models_cost_each_other_in_the_caches(cell_of, searched, copies):
    found = frontier.measure(cell_of(*of_world("abc", OF_THREE), **copies))
    expected = "not measured: prediction model B3 predicts the peak of this mix with an error of "
    assert found.record["reason"].startswith(expected)
    truth = with_caches("abc", found.record["weights"])
    assert found.record["estimate_scale"] == pytest.approx(truth, rel=0.03)


@pytest.mark.parametrize("missing", ["copies", "copies_alone", "checks"])
def test_without_any_of_that_it_is_measured(cell_of, searched, copies, missing):
    cell = cell_of(*of_world("abc", OF_THREE), **copies | {missing: []})
    with pytest.raises(searched):
        frontier.measure(cell)
    assert "this mix: the error of prediction model B2 is up to" in cell.messages[-1]


def test_a_step_that_cannot_predict_this_mix_does_not_though_it_predicts_the_others_best(
    cell_of, searched, copies, monkeypatch
):
    """Without the graph of a model, prediction model B2 does not know the working set and cannot
    predict."""
    monkeypatch.setitem(WORK_MS, "d", 12.0)
    monkeypatch.setitem(EXCESS, "d", 0.5)
    mixes = [(*weights, 0) for weights in OF_THREE]
    cell = cell_of(*of_world("abcd", mixes), **copies)
    with pytest.raises(searched):
        frontier.measure(cell)
    assert "this mix: the error of prediction model B2 is up to" in cell.messages[-1]
