"""Tests of the progress of a cell: reported after each window, kept in a file, and harmless."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from measure_tasks import measure_task, server, tenant

from perseus.host.identity import identity
from perseus.measurement.cell import CellUnderTest, RawResults
from perseus.measurement.progress.file import SUFFIX, progress_file, under_way
from perseus.measurement.progress.state import Progress, TenantProgress
from perseus.serving.access import Access, Header
from perseus.serving.running_server import RunningServer
from perseus.study.remote import Remote
from perseus.study.sla import Sla

NAN, INFINITE = float("nan"), float("inf")
TASK = measure_task(tenant("a"), tenant("b", sla=Sla(percentile=99.0, latency_ms=80.0)))
SERVER = RunningServer("g:1", "h:2", "http://127.0.0.1:3/metrics", 1)


def row(window, name, verdict, attempt=1, **changes):
    """Return a row of windows.parquet."""
    return {
        "attempt": attempt,
        "window": window,
        "phase": "bracket",
        "window_verdict": "fail",
        "tenant": name,
        "offered_rps": 40.0,
        "completed_ratio": 0.75,
        "sla_percentile_ms": 61.5,
        "sla_ms": 50.0,
        "send_lag_p99_ms": 0.4,
        "send_lag_limit_ms": 1.0,
        "verdict": verdict,
        **changes,
    }


def told(rows=(), attempt=1, server=SERVER, seconds_left=None, task=TASK):
    """Return the progress that a cell with these windows reports."""
    heard = []
    raw = RawResults(None, None, {}, windows=list(rows))
    cell = CellUnderTest(task, None, None, [0], [1], raw, print, attempt, heard.append)
    cell.progressed(server, seconds_left)
    (progress,) = heard
    return progress


def test_before_the_first_window_the_slas_are_known():
    progress = told(server=None)
    assert (progress.study, progress.cell, progress.server) == ("test", TASK.cell, "cpu1")
    assert (progress.kind, progress.attempt, progress.process) == ("peak", 1, identity())
    assert (progress.phase, progress.windows, progress.end_s) == (None, {}, None)
    assert progress.metrics_url is None
    assert progress.tenants == (
        TenantProgress(name="a", percentile=95.0, sla_ms=50.0),
        TenantProgress(name="b", percentile=99.0, sla_ms=80.0),
    )


def test_a_window_tells_of_each_tenant_and_counts_once():
    rows = [
        row(0, "a", "pass", phase="warm_up", window_verdict="pass", offered_rps=1.0),
        row(0, "b", "pass", phase="warm_up", window_verdict="pass", offered_rps=1.0),
        row(1, "a", "fail"),
        row(1, "b", "pass", offered_rps=0.0, completed_ratio=NAN, sla_percentile_ms=INFINITE),
    ]
    before_s = time.time()
    progress = told(rows, seconds_left=90.0)
    assert progress.phase == "bracket" and progress.windows == {"pass": 1, "fail": 1}
    assert progress.metrics_url == SERVER.metrics_url
    assert before_s <= progress.told_s == progress.end_s - 90.0 <= time.time()
    a, b = progress.tenants
    assert (a.offered_rps, a.answered_rps, a.latency_ms) == (40.0, 30.0, 61.5)
    assert (a.send_lag_ms, a.send_lag_limit_ms, a.verdict) == (0.4, 1.0, "fail")
    assert (b.offered_rps, b.answered_rps, b.latency_ms, b.verdict) == (0.0, None, None, "pass")
    assert (a.passed_rps, a.failed_rps) == (1.0, 40.0)
    assert (b.passed_rps, b.failed_rps) == (1.0, None)  # without load, the window says nothing


def test_the_sla_is_the_one_that_the_last_window_judges():
    """A catalogue measures a network with several SLAs."""
    a, b = told([row(0, "a", "pass"), row(1, "a", "pass", sla_ms=12.5)]).tenants
    assert (a.sla_ms, b.sla_ms) == (12.5, 80.0)


def test_another_attempt_begins_anew():
    progress = told([row(0, "a", "fail"), row(0, "b", "fail")], attempt=2)
    assert (progress.attempt, progress.phase, progress.windows) == (2, None, {})


def test_a_server_that_wants_a_token_is_not_named():
    """Only Perseus has the token that the server requires.

    No other program can read the metrics, so the progress does not contain their address.
    """
    secret = Access(headers=(Header("authorization", "Bearer ", "s3cret"),))
    progress = told(server=RunningServer("g:1", "h:2", "http://far/metrics", None, secret))
    assert progress.metrics_url is None and "s3cret" not in progress.model_dump_json()


@pytest.mark.parametrize(
    ("tls", "metrics", "is_named"),
    [
        ("none", "http://far:8002/metrics", True),
        ("system", "https://far/metrics", True),
        ("ca.pem", "http://far:8002/metrics", True),
        ("ca.pem", "https://far/metrics", False),
    ],
)
def test_a_server_whose_metrics_need_a_pem_file_is_not_named(tls, metrics, is_named):
    remote = Remote(host="far", tls=tls, metrics=metrics)
    task = TASK.model_copy(update={"server": server(launcher="remote", remote=remote)})
    progress = told(server=RunningServer("g:1", "h:2", metrics, None), task=task)
    assert progress.metrics_url == (metrics if is_named else None)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "logs" / "test" / "measure" / "cpu1.a-b.peak.r1.log"
    path.parent.mkdir(parents=True)
    return path


def test_the_file_has_the_last_progress_until_the_job_ends(log, tmp_path):
    first, last = told(), told([row(0, "a", "pass")], seconds_left=5.0)
    with progress_file(log) as tell:
        assert under_way(tmp_path / "logs") == []
        for each in (first, last):
            tell(each)
            assert under_way(tmp_path / "logs") == [each]
    assert under_way(tmp_path / "logs") == [] and list(log.parent.iterdir()) == []


def test_it_goes_when_the_job_fails(log):
    with pytest.raises(KeyboardInterrupt), progress_file(log) as tell:
        tell(told())
        raise KeyboardInterrupt
    assert list(log.parent.iterdir()) == []


def test_what_a_killed_process_left_or_nobody_can_read_does_not_count(log, tmp_path):
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as other:
        killed = told().model_copy(update={"process": identity(other.pid)})
        log.with_suffix(SUFFIX).write_text(killed.model_dump_json())
        assert under_way(tmp_path / "logs") == [killed]
        other.kill()
    assert under_way(tmp_path / "logs") == []
    for text in ("", "{", "{}", '{"of": "another version"}'):
        log.with_suffix(SUFFIX).write_text(text)
        assert under_way(tmp_path / "logs") == []


def test_a_file_that_cannot_be_written_fails_no_measurement(log):
    log.parent.rmdir()
    log.parent.write_text("no folder")
    with progress_file(log) as tell:
        tell(told())


def test_a_file_survives_the_way_there_and_back():
    for progress in (told(), told([row(0, "a", "fail"), row(0, "b", "pass")], seconds_left=1.5)):
        assert Progress.model_validate_json(progress.model_dump_json()) == progress
