"""Tests of the experiments: their initial rates, their duration, and their registry."""

from __future__ import annotations

import json
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
import yaml
from measure_tasks import client, measure_task, server, tenant

from perseus.host.files import write_json
from perseus.measurement.advice import advice_for
from perseus.measurement.cell import BlockedError
from perseus.measurement.closed_loop import answered_rps
from perseus.measurement.experiments import peak, procedure
from perseus.measurement.measure import most_minutes
from perseus.measurement.peaks import searched_peak
from perseus.measurement.peaks.dedicated_peaks import DedicatedPeaks
from perseus.measurement.peaks.preset_advice import with_advice
from perseus.peak.certifiable import infeasible
from perseus.peak.durations import PATIENCE_S, loop_s
from perseus.peak.load_line import LoadLine
from perseus.peak.outcome import Outcome, no_peak
from perseus.serving.failures import ServerError
from perseus.study import planning
from perseus.study.experiments import KINDS
from perseus.study.experiments.aa import Run as Again
from perseus.study.experiments.concurrency import Run as Sweep
from perseus.study.experiments.peak import Run
from perseus.study.experiments.soak import Run as Soak
from perseus.study.read import read_study
from perseus.study.remote import Remote
from perseus.study.sla import Sla
from perseus.study.tasks.measure import MeasuredTenant

ROOT = Path(__file__).parents[3]
TENANT = tenant("a")


def record(
    folder: Path,
    number: int,
    outcome: str,
    scale: float | None,
    alone: MeasuredTenant = TENANT,
) -> Path:
    path = folder / f"{number}.json"
    cell = measure_task(alone, cell=f"{alone.name}.peak.r{number}").plain()
    found = {"estimate_scale": scale, "posterior_scales": [scale] if scale else []}
    path.write_text(json.dumps({"cell": cell, "outcome": outcome} | found))
    return path


def test_a_dedicated_peak_is_the_mean_of_the_repeats_that_found_one(tmp_path):
    good = [record(tmp_path, 1, "ok", 90.0), record(tmp_path, 2, "uncertified", 110.0)]
    bad = [record(tmp_path, 3, "failed", None), record(tmp_path, 4, "client_limited", 5.0)]
    assert DedicatedPeaks.read(good + bad).rps == {"a": 100.0}
    assert np.isnan(DedicatedPeaks.read(bad).rps["a"])


def test_repeats_in_one_file_are_read_as_their_own_records_are(tmp_path):
    apart = [record(tmp_path, 1, "ok", 90.0), record(tmp_path, 2, "unsteady", None)]
    together = tmp_path / "a.peak.json"
    write_json(together, [json.loads(path.read_text()) for path in apart])
    other = record(tmp_path, 3, "ok", 20.0, tenant("b"))
    found = DedicatedPeaks.read([together, other])
    assert found.records == DedicatedPeaks.read([*apart, other]).records
    assert found.rps == {"a": 90.0, "b": 20.0}


def test_an_sla_that_fails_without_load_is_infeasible():
    why = infeasible([Sla(latency_ms=4.0)], ["a"], [1.0], {"a": 5.0})
    assert why == "the median latency of a without load is 5.0 ms, longer than its SLA of 4 ms"
    assert infeasible([Sla(latency_ms=5.0)], ["a"], [1.0], {"a": 5.0}) == ""
    slas, alone_ms = [Sla(latency_ms=9.0), Sla(latency_ms=4.0)], {"a": 5.0, "b": 5.0}
    assert infeasible(slas, ["a", "b"], [1.0, 0.0], alone_ms) == ""  # the mix has no load of b
    assert infeasible(slas, ["a", "b"], [1.0, 0.1], alone_ms) != ""


@pytest.mark.parametrize("outcome", ["unsteady", "client_limited", "infeasible"])
def test_a_line_without_one_of_its_dedicated_peaks_is_blocked_by_that_cell(
    tmp_path, monkeypatch, outcome
):
    """Without a dedicated peak, Perseus starts no shared server, and cannot see that a latency
    without load exceeds an SLA."""

    started = []

    @contextmanager
    def checked(cell):
        started.append(cell)
        yield SimpleNamespace(record={}, unloaded_p50_ms={"a": 5.0, "b": 5.0})

    monkeypatch.setattr(searched_peak, "server_under_test", checked)
    slow = tenant("b", sla=Sla(latency_ms=4.0))
    records = [
        record(tmp_path, 1, "ok", 90.0),
        record(tmp_path, 2, outcome, None, slow),
        record(tmp_path, 3, "failed", None, slow),
    ]
    task = measure_task(tenant("a"), slow, run=Run.mix([1, 1]))
    inputs = SimpleNamespace(dedicated_records=records)
    raw = SimpleNamespace(requests=SimpleNamespace(windows=0))
    cell = SimpleNamespace(task=task, inputs=inputs, raw=raw, say=lambda text: None)
    with pytest.raises(BlockedError) as blocked:
        peak.measure(cell)
    assert started == []
    assert str(blocked.value).endswith(
        f"did not find: b.peak.r2 ({outcome.replace('_', ' ')}), b.peak.r3 (failed)"
    )
    inputs.dedicated_records = [records[0], record(tmp_path, 4, "uncertified", 10.0, slow)]
    assert peak.measure(cell).record["outcome"] == "infeasible"


def found_in(monkeypatch, task, search, p50_ms=5.0, first_window=0):
    """Return the findings and messages of a cell with one tenant and the search `search`."""
    messages = []
    under_test = SimpleNamespace(
        record={},
        unloaded_ms={"a": np.array([p50_ms])},
        unloaded_p50_ms={"a": p50_ms},
        under_load=nullcontext,
    )
    monkeypatch.setattr(searched_peak, "server_under_test", lambda _: nullcontext(under_test))
    monkeypatch.setattr(searched_peak, "find_peak", search)
    cell = SimpleNamespace(
        task=task,
        inputs=SimpleNamespace(dedicated_records=[]),
        client_cores=[0],
        raw=SimpleNamespace(requests=SimpleNamespace(windows=first_window)),
        own_stream=None,
        say=messages.append,
    )
    return peak.measure(cell), messages


@pytest.mark.parametrize(("in_search", "in_files"), [(3, 8), (-1, -1)])
def test_the_certified_window_has_its_number_in_the_files(monkeypatch, in_search, in_files):
    """The first five windows in the files are from an earlier attempt."""
    found = replace(no_peak(Outcome.OK, ""), certified_window=in_search)
    task = measure_task(TENANT)
    findings, _ = found_in(monkeypatch, task, Mock(return_value=found), first_window=5)
    assert findings.record["certified_window"] == findings.watched_window == in_files


def test_what_the_preset_left_uncertified_names_one_that_would_not():
    task = measure_task(tenant("a", sla=Sla(latency_ms=50.0, percentile=99)), preset="quick")
    cell, line = SimpleNamespace(task=task), LoadLine((0.0,), (1.0,))
    found = no_peak(Outcome.UNCERTIFIED, "no rate was certified")
    slow, fast = replace(found, estimate=4.0), replace(found, estimate=3000.0)
    reason = with_advice(slow, cell, line).reason
    assert reason.startswith(found.reason) and "publication certifies an SLA on the p99" in reason
    assert with_advice(fast, cell, line) == fast
    unsteady = replace(slow, outcome=Outcome.UNSTEADY)
    assert with_advice(unsteady, cell, line) == unsteady


@pytest.mark.parametrize(("p50_ms", "warns"), [(800.0, True), (2.0, False)])
def test_a_slow_model_is_told_of_before_it_is_measured(monkeypatch, p50_ms, warns):
    """A search begins at 0.6 / (median latency without load): at 0.75 or 300 requests/s."""
    task = measure_task(tenant("a", sla=Sla(latency_ms=4000.0)), preset="quick")
    dead = Mock(side_effect=ServerError("it has died"))
    findings, output = found_in(monkeypatch, task, dead, p50_ms)
    assert (findings.outcome, findings.record["reason"]) == (Outcome.FAILED, "it has died")
    assert (
        any(
            "end without a certified rate (the rate of a starts at 0.75 requests/s: the" in text
            for text in output
        )
        == warns
    )


@pytest.mark.parametrize(
    ("used", "of_server", "words"),
    [
        (client("http"), server(), ["gRPC", "shared memory", "larger machine"]),
        (client("grpc", shared_memory=True), server(), ["larger machine"]),
        (
            client("grpc"),
            server(launcher="remote", remote=Remote(host="far")),
            ["remote.client_cores"],
        ),
        # gRPC to a container uses no shared memory
        (client("grpc"), server(launcher="podman"), ["larger machine"]),
        (client("grpc"), server(launcher="apptainer"), ["shared memory", "larger machine"]),
        (
            client("grpc", shared_memory=True).model_copy(update={"processes": 1}),
            server(),
            ["client.processes", "larger machine"],
        ),
    ],
)
def test_a_client_that_limits_says_what_the_study_does_not_use_yet(used, of_server, words):
    ways = advice_for(used, of_server, client_cores=2).split(", ")
    assert len(ways) == len(words)
    for way, word in zip(ways, words, strict=True):
        assert word in way


def test_every_kind_has_a_procedure():
    for kind in KINDS:
        assert callable(procedure(kind).measure) and callable(procedure(kind).load_s)
    with pytest.raises(ModuleNotFoundError):
        procedure("no-such-kind")


def test_what_the_study_of_pairs_would_take_is_what_is_written_of_it():
    config = ROOT / "config"
    raw, change = (
        yaml.safe_load((config / name).read_text())
        for name in ("config.yaml", "studies/pairs.yaml")
    )
    study = read_study(raw | change, prices=config / "prices.csv", folder=ROOT)
    tasks = [planning.measure_task(study, cell) for cell in study.cells.values()]
    about_s = sum(procedure(task.run.kind).load_s(task)[0] for task in tasks)
    text = f"{len(tasks)} cells, {about_s / 60:.0f} min of load"
    for page in ("docs/how-to/questions.md", "config/studies/pairs.yaml"):
        assert text in (ROOT / page).read_text()


def test_what_measuring_takes_is_known_beforehand():
    task = measure_task(tenant("a"), tenant("b"), run=Run.mix([1, 1]))
    about_s, most_s = procedure("peak").load_s(task)
    alone_s, _ = procedure("peak").load_s(measure_task(tenant("a")))
    assert 10 < alone_s < about_s < most_s < 20 * about_s
    sweep = measure_task(tenant("a"), run=Sweep(concurrencies=(1, 4, 16)))
    seconds = 3 * loop_s(sweep.search, sweep.slas)
    assert procedure("concurrency").load_s(sweep) == (seconds, seconds)
    again = measure_task(tenant("a"), run=Again(restarts=3, windows=4, concurrency=8))
    assert procedure("aa").load_s(again) == pytest.approx(
        (5 * seconds, 4 * 5 * seconds + 3 * PATIENCE_S)
    )
    soak = Soak(name="soak", duration_s=3600, window_s=58.9, rates_rps=(5.0,))
    # each window also has 1 s of settling time, and ends 0.1 s after the counted time
    hour = procedure("soak").load_s(measure_task(tenant("a"), run=soak))
    assert hour == pytest.approx((3600, 3600))


@pytest.mark.parametrize(
    ("hours", "image", "minutes"),
    [(1, None, 240), (10, None, 1230), (24, None, 2910), (10, "triton", 1290)],
)
def test_a_scheduler_is_asked_for_all_attempts_at_a_cell_and_four_hours_at_least(
    hours, image, minutes
):
    soak = Soak(name="soak", duration_s=3600 * hours, window_s=58.9, rates_rps=(5.0,))
    task = measure_task(tenant("a"), run=soak, server=server(image=image))
    assert most_minutes(task) == pytest.approx(minutes, abs=2)


def test_the_rate_of_answers_has_an_interval():
    steady = answered_rps(np.arange(0, 10 * 10**9, 10**7), 0, 10 * 10**9)
    assert steady.value == pytest.approx(100)
    assert steady.low <= 100 <= steady.high < 101
