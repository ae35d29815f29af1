"""How the experiments run: what they start from, what they cost, and how they are found."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from measure_tasks import client, measure_task, server, tenant

from perseus.measurement.client_advice import what_would_help
from perseus.measurement.dedicated_peaks import dedicated_peaks
from perseus.measurement.experiments import peak as peak_experiment
from perseus.measurement.experiments import procedure
from perseus.measurement.experiments.concurrency import answered_rps
from perseus.measurement.experiments.peak import infeasible
from perseus.peak.durations import loop_s
from perseus.peak.outcome import Outcome, no_peak
from perseus.study.experiments import KINDS
from perseus.study.experiments.concurrency import Run as Sweep
from perseus.study.experiments.peak import Run
from perseus.study.remote import Remote
from perseus.study.sla import Sla

UNLOADED_MS = {"a": 5.0}


def record(folder: Path, number: int, outcome: str, scale: float | None) -> Path:
    path = folder / f"{number}.json"
    cell = measure_task(tenant("a")).plain()
    path.write_text(json.dumps({"cell": cell, "outcome": outcome, "estimate_scale": scale}))
    return path


def test_a_dedicated_peak_is_the_mean_of_the_repeats_that_found_one(tmp_path):
    good = [record(tmp_path, 1, "ok", 90.0), record(tmp_path, 2, "uncertified", 110.0)]
    bad = [record(tmp_path, 3, "failed", None), record(tmp_path, 4, "client_limited", 5.0)]
    assert dedicated_peaks(good + bad) == {"a": 100.0}
    assert np.isnan(dedicated_peaks(bad)["a"])


def test_an_sla_that_fails_without_load_and_a_missing_dedicated_peak_are_infeasible():
    slow = measure_task(tenant("a", sla=Sla(latency_ms=4.0)))
    assert "5.0 ms (median) without any load, its SLA is 4 ms" in infeasible(slow, {}, UNLOADED_MS)
    quick = measure_task(tenant("a"))
    assert infeasible(quick, {}, UNLOADED_MS) == "" == infeasible(quick, {"a": 9.0}, UNLOADED_MS)
    assert "no dedicated peak" in infeasible(quick, {"a": float("nan")}, UNLOADED_MS)


@pytest.mark.parametrize(
    ("used", "of_server", "said"),
    [
        (client("http"), server(), ["gRPC", "shared memory", "larger machine"]),
        (client("grpc", shared_memory=True), server(), ["larger machine"]),
        (client("grpc"), server(remote=Remote(host="far")), ["remote.client_cores"]),
        (
            client("grpc", shared_memory=True).model_copy(update={"processes": 1}),
            server(),
            ["client.processes", "larger machine"],
        ),
    ],
)
def test_a_client_that_limits_says_what_the_study_does_not_use_yet(used, of_server, said):
    ways = what_would_help(used, of_server, client_cores=2).split(", ")
    assert len(ways) == len(said)
    for way, word in zip(ways, said, strict=True):
        assert word in way


@pytest.mark.parametrize("outcome", [Outcome.CLIENT_LIMITED, Outcome.DISTURBED])
def test_a_peak_that_the_client_limits_ends_with_advice(monkeypatch, outcome):
    task = measure_task(tenant("a"), client=client("http"))
    under_test = SimpleNamespace(unloaded_p50_ms={"a": 5.0}, record={})
    monkeypatch.setattr(peak_experiment, "server_under_test", lambda _: nullcontext(under_test))
    ended = no_peak(outcome, "send lag p99 3.0 ms")
    monkeypatch.setattr(peak_experiment, "_search", lambda *arguments: ended)
    cell = SimpleNamespace(
        task=task,
        inputs=SimpleNamespace(dedicated_records=[]),
        client_cores=[0],
        say=lambda line: None,
    )
    reason = peak_experiment.measure(cell).record["reason"]
    assert reason.startswith("send lag p99 3.0 ms")
    assert ("gRPC instead of HTTP" in reason) == (outcome is Outcome.CLIENT_LIMITED)


def test_every_kind_has_a_procedure():
    for kind in KINDS:
        assert callable(procedure(kind).measure) and callable(procedure(kind).load_s)
    with pytest.raises(ModuleNotFoundError):
        procedure("no-such-kind")


def test_what_measuring_takes_is_known_beforehand():
    task = measure_task(tenant("a"), tenant("b"), run=Run.mix([1, 1]))
    about_s, most_s = procedure("peak").load_s(task)
    alone_s, _ = procedure("peak").load_s(measure_task(tenant("a")))
    assert 10 < alone_s < about_s < most_s < 20 * about_s
    sweep = measure_task(tenant("a"), run=Sweep(concurrencies=(1, 4, 16)))
    seconds = 3 * loop_s(sweep.search, sweep.slas)
    assert procedure("concurrency").load_s(sweep) == (seconds, seconds)


def test_the_rate_of_answers_has_an_interval():
    steady = answered_rps(np.arange(0, 10 * 10**9, 10**7), 0, 10 * 10**9)
    assert steady.value == pytest.approx(100)
    assert steady.low <= 100 <= steady.high < 101
