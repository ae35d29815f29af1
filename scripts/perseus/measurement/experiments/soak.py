"""Experiment `soak`: the same load for hours on one server, and what it holds after each window.

Load comes in windows, one right after the other: so the client keeps no more requests in memory
than those of one window. Between two of them the server is idle, and what its processes hold then
is not what requests in flight need.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from perseus.host.procfs import process_table, resources, tree
from perseus.measurement.cell import BlockedError, CellUnderTest, Findings
from perseus.measurement.open_loop import open_loop, open_loop_s
from perseus.measurement.peaks.dedicated_peaks import DedicatedPeaks
from perseus.measurement.server_under_test import ServerUnderTest, server_under_test
from perseus.measurement.windows import keep
from perseus.peak.outcome import Outcome
from perseus.peak.verdict import NO_QUIET, Verdict
from perseus.peak.window import Window
from perseus.serving.failures import ServerError
from perseus.serving.running_server import RunningServer
from perseus.study.experiments.soak import Run
from perseus.study.tasks.measure import MeasureTask

PHASE: Final = "soak"

Spoilt = tuple[Outcome, str]
"""By whom a window was spoilt, the host or the client, and how."""


@dataclass(frozen=True)
class Soaked:
    """How a soak ended, and what the server held after each window."""

    outcome: Outcome
    reason: str
    readings: Sequence[Mapping[str, Any]] = ()


def measure(cell: CellUnderTest) -> Findings:
    """Offer the rates until the time is over, or the server dies."""
    task = cell.task
    dedicated = DedicatedPeaks.read(cell.inputs.dedicated_records)
    if blocked := dedicated.why_blocked(task.tenant_names):
        raise BlockedError(blocked)
    rates_rps = rates(cast(Run, task.run), task.tenant_names, dedicated.rps)
    with server_under_test(cell) as server:
        soaked = soak(cell, server, rates_rps)
    found = {
        "outcome": soaked.outcome,
        "reason": soaked.reason,
        "rates_rps": dict(zip(task.tenant_names, rates_rps, strict=True)),
        "readings": soaked.readings,
    }
    return Findings({**server.record, **found})


def nothing(cell: CellUnderTest) -> Mapping[str, Any]:
    """No rates, and no readings."""
    return {"rates_rps": dict.fromkeys(cell.task.tenant_names, math.nan), "readings": []}


def load_s(task: MeasureTask) -> tuple[float, float]:
    """All windows; none is tried again."""
    seconds = windows_of(task) * open_loop_s(task, cast(Run, task.run).window_s)
    return seconds, seconds


def windows_of(task: MeasureTask) -> int:
    """How many windows the time has room for."""
    run = cast(Run, task.run)
    return max(1, round(run.duration_s / open_loop_s(task, run.window_s)))


def rates(run: Run, tenants: Sequence[str], dedicated_rps: Mapping[str, float]) -> list[float]:
    """The rate of each tenant, requests/s; NaN where it is a share of a peak that has none."""
    if run.rates_rps:
        return list(run.rates_rps)
    pairs = zip(tenants, run.percents_of_peak, strict=True)
    return [percent / 100 * dedicated_rps[name] for name, percent in pairs]


def soak(cell: CellUnderTest, server: ServerUnderTest, rates_rps: Sequence[float]) -> Soaked:
    """Offer all windows, while the server lives.

    There is no quiet to wait for in hours, so that more is tolerated from the beginning than in a
    search: late sends are noise here, not a trend.
    """
    count = windows_of(cell.task)
    elapsed_s = open_loop_s(cell.task, cast(Run, cell.task.run).window_s)
    readings, spoilt = list[Mapping[str, Any]](), list[Spoilt]()
    try:
        with server.under_load() as system:
            for left in reversed(range(count)):
                window = open_loop(cell.task, system, PHASE, rates_rps, elapsed_s, NO_QUIET)
                keep(cell, system, window, left * window.elapsed_s)
                readings.append(reading(server.server))
                spoilt += what_spoilt(window)
    except ServerError as error:
        return Soaked(*how_it_died(error, len(readings) * elapsed_s), readings)
    return Soaked(*how_it_went(spoilt, count), readings)


def reading(server: RunningServer) -> dict[str, Any]:
    """What the server's processes hold now; of one on another host, or dead, nothing is known."""
    table = process_table()
    pids = tree(table, server.pid) if server.pid is not None else set()
    memory_bytes, files = resources(table, pids) if pids else (None, None)
    return {"time_ns": time.monotonic_ns(), "memory_bytes": memory_bytes, "open_files": files}


def what_spoilt(window: Window) -> list[Spoilt]:
    """Of a window that was spoilt, by whom and how."""
    if window.verdict is not Verdict.INVALID:
        return []
    first = next(tenant for tenant in window.tenants if tenant.verdict is Verdict.INVALID)
    return [(Outcome.DISTURBED if first.disturbed else Outcome.CLIENT_LIMITED, first.reason)]


def how_it_died(error: ServerError, lived_s: float) -> tuple[Outcome, str]:
    """A server that dies after it has carried the load is an answer, no trouble that may pass."""
    if lived_s == 0:
        return Outcome.FAILED, str(error)
    return Outcome.INFEASIBLE, f"{error}, after {lived_s / 3600:.2g} h of the load"


def how_it_went(spoilt: Sequence[Spoilt], count: int) -> tuple[Outcome, str]:
    """Of `count` windows, most of which must say something of the server."""
    if 2 * len(spoilt) <= count:
        return Outcome.OK, ""
    ((outcome, _),) = Counter(outcome for outcome, _ in spoilt).most_common(1)
    reason = next(reason for each, reason in reversed(spoilt) if each is outcome)
    return outcome, f"{len(spoilt)} of {count} windows were spoilt, the last: {reason}"
