"""Tests of the results of every kind of experiment, also of kinds that start their own servers."""

from __future__ import annotations

import itertools
import json
import os
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from measure_tasks import measure_task, tenant
from no_server import launched_by

from perseus.host.cpu_quota import CpuQuota, Throttling
from perseus.measurement import measure as frame
from perseus.measurement import server_under_test, throttled
from perseus.measurement.cell import Findings, Inputs, Outputs
from perseus.measurement.monitor import Monitor
from perseus.measurement.monitor_schema import MONITOR_SCHEMA
from perseus.measurement.progress.state import ignored
from perseus.measurement.raw_results import REQUESTS_SCHEMA, WINDOWS_SCHEMA
from perseus.measurement.verify import VerificationError
from perseus.peak.outcome import Outcome
from perseus.serving.failures import ServerError
from perseus.serving.running_server import RunningServer
from perseus.study.tasks.measure import MeasureTask
from perseus.study.traces import TraceSource
from perseus.traffic.client import ClientError

NOBODY_LISTENS = "127.0.0.1:9"
OK = {"outcome": "ok", "reason": ""}


@pytest.fixture
def launched(monkeypatch):
    """Return the logs of the launched servers.

    The fixture starts no server and does not pin this process.
    """
    logs = []

    @contextmanager
    def launch(server, repository, log_path, cores, **more):
        logs.append(log_path)
        log_path.write_text(f"server {len(logs)}\n")
        yield RunningServer(
            NOBODY_LISTENS, NOBODY_LISTENS, f"http://{NOBODY_LISTENS}/metrics", os.getpid()
        )

    launched_by(launch, monkeypatch)
    return logs


def starting_twice(cell):
    for _ in range(2):
        with (
            server_under_test.started(cell) as server,
            Monitor(cell.raw.monitor, server, [], []),
        ):
            pass
    return Findings(OK)


def refusing(cell):
    with server_under_test.started(cell):
        raise ServerError("it serves nothing")


def run(
    monkeypatch, folder, experiment, say=lambda line: None, hear=ignored, file=None, **task
) -> Outputs:
    monkeypatch.setattr(frame, "procedure", lambda kind: SimpleNamespace(measure=experiment))
    outputs = Outputs.within(folder)
    inputs = Inputs(folder / "repository", {}, [], file)
    frame.measure(measure_task(tenant("a"), tenant("b"), **task), inputs, outputs, say, hear)
    return outputs


def test_an_experiment_that_starts_servers_itself_has_all_files(tmp_path, monkeypatch, launched):
    outputs = run(monkeypatch, tmp_path, starting_twice)
    assert len(launched) == 2 and outputs.server_log.read_text() == "server 2\n"
    for path, schema in (
        (outputs.requests, REQUESTS_SCHEMA),
        (outputs.windows, WINDOWS_SCHEMA),
        (outputs.monitor, MONITOR_SCHEMA),
    ):
        assert pq.read_table(path).schema.equals(schema)
    assert len(set(pq.read_table(outputs.monitor)["time_ns"].to_pylist())) == 2
    record = json.loads(outputs.record.read_text())
    assert MeasureTask.model_validate(record["cell"]).tenant_names == ["a", "b"]
    assert record["outcome"] == "ok" and record["errors"] == {"a": {}, "b": {}}
    assert (record["requests"], record["measured_s"], record["gpu_watts"]) == (0, 0, None)
    assert record["host"]["client_realtime"] is None and record["host"]["client_cores"] == [0]
    assert record["started"]["monotonic_ns"] < record["finished_monotonic_ns"]


@pytest.mark.parametrize(("attempt", "warned"), [(1, True), (2, False)])
def test_answers_that_are_too_fast_are_a_warning_of_the_attempt_that_stands(
    tmp_path, monkeypatch, launched, attempt, warned
):
    row = {"requests": 5510, "completed_ratio": 1.0, "elapsed_s": 12.0, "settle_s": 2.0}
    row["phase"] = "probe"

    def measured(cell):
        cell.raw.windows.append({"attempt": attempt, "tenant": "a", "start_ns": 0, **row})
        limits = {"unbatched_limit_rps": {"a": 48.0, "b": None}, "unloaded_p50_ms": {"a": 20.0}}
        return Findings({**OK, **limits})

    monkeypatch.setattr(frame, "window_watts", lambda monitor, windows, window: None)
    monkeypatch.setattr(frame, "host_watts", lambda monitor, windows, window: None)
    messages = []
    record = json.loads(run(monkeypatch, tmp_path, measured, messages.append).record.read_text())
    expected = [
        "a answered 551 requests/s, but according to the latency of single requests, its model"
        " instances can answer only 48 requests/s: check whether a cache answers instead of the"
        " model"
    ]
    assert record["warnings"] == (expected if warned else [])
    assert messages == [f"warning: {each}" for each in record["warnings"]]


def test_the_record_says_what_recorded_arrivals_were_read_as(tmp_path, monkeypatch, launched):
    day, source = tmp_path / "day.txt", TraceSource(file="traces/day.txt", unit="ms")
    day.write_text("0\n500\n1000\n")
    plain = run(monkeypatch, tmp_path, lambda cell: Findings(OK))
    assert json.loads(plain.record.read_text())["traces"] == {}
    traced = run(monkeypatch, tmp_path, lambda cell: Findings(OK), file=day, trace=source)
    assert json.loads(traced.record.read_text())["traces"] == {
        "traces/day.txt": "traces/day.txt was read as a text file without column names:"
        " 3 requests in 1.5 s, 2/s; times in ms"
    }


def test_a_cpu_quota_that_stopped_the_server_is_its_outcome_and_a_warning(
    tmp_path, monkeypatch, launched
):
    """In each attempt, the quota stops the server in 30 of 100 periods.

    The outcome changes to `throttled` only if the quota can explain the outcome.
    """
    counts = itertools.count()
    monkeypatch.setattr(throttled, "read_quota", lambda: CpuQuota(2.0, tmp_path))
    monkeypatch.setattr(
        CpuQuota, "throttling", lambda quota: Throttling(100 * (n := next(counts)), 30 * n)
    )
    told = "the CPU quota of 2 cores stopped server and client in 30% of the quota periods"
    for found, outcome, reason in (
        ({**OK, "outcome": "unsteady", "reason": "slow"}, "throttled", f"{told} (slow)"),
        (OK, "ok", OK["reason"]),
    ):
        outputs = run(monkeypatch, tmp_path, lambda cell, found=found: Findings(found))
        record = json.loads(outputs.record.read_text())
        assert (record["outcome"], record["reason"], record["throttled"]) == (outcome, reason, told)
        assert record["warnings"] == [f"{told}: the measured limits are valid only with this quota"]
        assert len(record["attempts"]) == (2 if outcome == "throttled" else 1)


def test_the_power_is_that_of_the_window_which_the_experiment_names(
    tmp_path, monkeypatch, launched
):
    monkeypatch.setattr(frame, "window_watts", lambda monitor, windows, window: 100.0 + window)
    monkeypatch.setattr(frame, "host_watts", lambda monitor, windows, window: 50.0 + window)
    for found, watts in ((Findings(OK, watched_window=7), 107), (Findings(OK), 99)):
        outputs = run(monkeypatch, tmp_path, lambda cell, found=found: found)
        record = json.loads(outputs.record.read_text())
        assert (record["gpu_watts"], record["host_watts"]) == (watts, watts - 50)


def test_without_load_the_median_counts(tmp_path, monkeypatch, launched):
    """A single slow request changes a high percentile of three requests, but not the median."""
    unloaded_ms = {"a": np.array([5.0, 5.0, 50.0]), "b": np.array([2.0, 1.0, 3.0])}
    for name in ("first_inferences", "verify"):
        monkeypatch.setattr(server_under_test, name, lambda tenants: {})
    monkeypatch.setattr(server_under_test, "tenants_on", lambda *arguments: [])
    monkeypatch.setattr(server_under_test, "server_facts", lambda server: {})
    monkeypatch.setattr(server_under_test, "routes_to", lambda tenants: nullcontext(unloaded_ms))
    monkeypatch.setattr(server_under_test, "sequential_ms", lambda route, *limits: route)

    def unloaded(cell):
        with server_under_test.server_under_test(cell) as server:
            assert server.unloaded_p50_ms == {"a": 5.0, "b": 2.0}
            return Findings({**server.record, **OK})

    record = json.loads(run(monkeypatch, tmp_path, unloaded).record.read_text())
    assert record["unloaded_p50_ms"] == {"a": 5.0, "b": 2.0}


def test_each_server_is_told_of_from_its_start_until_the_next_one(tmp_path, monkeypatch, launched):
    heard = []
    run(monkeypatch, tmp_path, starting_twice, hear=heard.append)
    url = f"http://{NOBODY_LISTENS}/metrics"
    assert [each.metrics_url for each in heard] == [None, url, None, url]
    assert {each.cell for each in heard} == {"a-b.peak.r1"}


def test_a_cell_that_cannot_be_measured_has_no_record(tmp_path, monkeypatch, launched):
    with pytest.raises(ServerError, match="serves nothing"):
        run(monkeypatch, tmp_path, refusing)
    assert len(launched) == 2  # this failure may be temporary
    assert not list(tmp_path.glob("*.json")) and not (tmp_path / "requests.parquet").exists()


def attempts_at(monkeypatch, folder, *ends, with_limit=()):
    """Return the record, the windows and the messages of a cell.

    `ends` has one entry for each attempt: the outcome of an attempt with one window, or the message
    of a server error before the first window. `with_limit` contains the numbers of the attempts
    with an estimate.
    """
    messages, turn = [], iter(ends)

    def experiment(cell):
        end = next(turn)
        with server_under_test.started(cell):
            if end not in set(Outcome):
                raise ServerError(end)
            window = {"attempt": cell.attempt, "window": len(cell.raw.windows), "tenant": "a"}
            cell.raw.windows.append(window | {"requests": 50, "elapsed_s": 4.0})
        limit = {"estimate_scale": 0.9, "posterior_scales": [0.8, 1.0]}
        found = limit if cell.attempt in with_limit else {}
        told = {"outcome": end, "reason": f"why {end}", "attempt_seen": cell.attempt}
        return Findings(told | found)

    outputs = run(monkeypatch, folder, experiment, messages.append)
    assert next(turn, "over") == "over"
    record = json.loads(outputs.record.read_text())
    return record, pq.read_table(outputs.windows).to_pylist(), messages


@pytest.mark.parametrize("trouble", ["unsteady", "client_limited", "failed"])
@pytest.mark.parametrize("then", ["ok", "infeasible", "unsteady"])
def test_trouble_that_may_pass_is_measured_once_more_on_a_fresh_server(
    tmp_path, monkeypatch, launched, trouble, then
):
    record, windows, output = attempts_at(monkeypatch, tmp_path, trouble, then)
    assert len(launched) == 2
    assert (record["outcome"], record["attempt"], record["attempt_seen"]) == (then, 2, 2)
    endings = [(each["outcome"], each["reason"].split(";")[0]) for each in record["attempts"]]
    assert endings == [(trouble, f"why {trouble}"), (then, f"why {then}")]
    assert [(row["attempt"], row["window"]) for row in windows] == [(1, 0), (2, 1)]
    once_more = f"{trouble}: {record['attempts'][0]['reason']}; measuring again on a fresh server"
    assert once_more in output
    assert record["requests"] == 100


def test_a_cell_whose_client_died_is_measured_once_more(tmp_path, monkeypatch, launched):
    turn = iter([ClientError("the client of a died"), None])

    def experiment(cell):
        with server_under_test.started(cell):
            if error := next(turn):
                raise error
            return Findings(OK)

    record = json.loads(run(monkeypatch, tmp_path, experiment).record.read_text())
    assert len(launched) == 2 and record["outcome"] == "ok"
    assert record["attempts"][0] == {"outcome": "failed", "reason": "the client of a died"}


@pytest.mark.parametrize("outcome", ["client_limited", "disturbed"])
def test_whatever_is_measured_a_client_that_limits_says_what_would_help(
    tmp_path, monkeypatch, launched, outcome
):
    record, _, _ = attempts_at(monkeypatch, tmp_path, outcome, outcome)
    helps = "; the client can send more load with: inputs in shared memory ("
    for reason in (record["reason"], *(each["reason"] for each in record["attempts"])):
        assert reason.startswith(f"why {outcome}")
        assert (helps in reason) == (outcome == "client_limited")


@pytest.mark.parametrize("outcome", ["ok", "uncertified", "infeasible", "blocked"])
def test_what_another_attempt_would_not_change_is_measured_once(
    tmp_path, monkeypatch, launched, outcome
):
    record, _, output = attempts_at(monkeypatch, tmp_path, outcome)
    assert (record["attempt"], len(record["attempts"]), len(launched)) == (1, 1, 1)
    assert not any("measuring again" in line for line in output)


@pytest.mark.parametrize(
    ("then", "with_limit", "stands"),
    [
        ("failed", (1,), 1),
        ("client_limited", (1,), 1),
        ("unsteady", (1,), 1),  # the second attempt has no estimate
        ("unsteady", (1, 2), 2),
        ("infeasible", (1,), 2),  # a conclusive outcome
        ("failed", (), 2),
    ],
)
def test_an_estimate_is_not_lost_to_a_later_attempt_that_has_none(
    tmp_path, monkeypatch, launched, then, with_limit, stands
):
    ends = "unsteady", then
    record, windows, _ = attempts_at(monkeypatch, tmp_path, *ends, with_limit=with_limit)
    assert (record["attempt"], record["attempt_seen"]) == (stands, stands)
    assert record["outcome"] == ends[stands - 1]
    assert [each["outcome"] for each in record["attempts"]] == list(ends)
    assert len(windows) == 2


def test_a_server_that_does_not_start_is_started_once_more(tmp_path, monkeypatch, launched):
    record, windows, output = attempts_at(monkeypatch, tmp_path, "it did not start", "ok")
    assert (record["outcome"], record["attempt"], len(windows)) == ("ok", 2, 1)
    assert record["attempts"] == [
        {"outcome": "failed", "reason": "it did not start"},
        {"outcome": "ok", "reason": "why ok"},
    ]
    assert "failed: it did not start; measuring again on a fresh server" in output


def test_what_another_server_would_not_change_is_said_at_once(tmp_path, monkeypatch, launched):
    def lying(cell):
        with server_under_test.started(cell):
            raise VerificationError("it answers otherwise than torch")

    with pytest.raises(VerificationError):
        run(monkeypatch, tmp_path, lying)
    assert len(launched) == 1


def test_what_stood_stands_where_the_fresh_server_cannot_be_measured(
    tmp_path, monkeypatch, launched
):
    record, windows, _ = attempts_at(monkeypatch, tmp_path, "client_limited", "it did not start")
    assert (record["outcome"], record["attempt"]) == ("client_limited", 1)
    assert record["attempts"][1] == {"outcome": "failed", "reason": "it did not start"}
    assert len(windows) == 1
