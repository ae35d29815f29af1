"""Run the experiment `soak`: offer fixed load for hours to one server, and after each window read
the server's memory use and number of open files.

The load consists of consecutive windows, so that the client keeps only the requests of one window
in memory. The server is idle between windows, so the readings do not include the memory of requests
in flight.
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
from perseus.peak.verdict import ON_BUSY_HOST
from perseus.peak.window import Window
from perseus.serving.failures import ServerError
from perseus.serving.running_server import RunningServer
from perseus.study.experiments.soak import Run
from perseus.study.tasks.measure import MeasureTask
from perseus.traffic.client import ClientError

PHASE: Final = "soak"

Invalid = tuple[Outcome, str]
"""Outcome of an invalid window (`client_limited` or `disturbed`), and the text of its reason."""


@dataclass(frozen=True)
class Soaked:
    """The outcome of a soak test, and the server's memory and number of open files after each
    window."""

    outcome: Outcome
    reason: str
    readings: Sequence[Mapping[str, Any]] = ()


def measure(cell: CellUnderTest) -> Findings:
    """Offer the configured rates until the configured time is over, or until the server ends."""
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


def empty_record(cell: CellUnderTest) -> Mapping[str, Any]:
    return {"rates_rps": dict.fromkeys(cell.task.tenant_names, math.nan), "readings": []}


def load_s(task: MeasureTask) -> tuple[float, float]:
    """Return how long the experiment offers load, in seconds: usually, and at most.

    Both durations are equal, because the experiment repeats no window.
    """
    seconds = windows_of(task) * open_loop_s(task, cast(Run, task.run).window_s)
    return seconds, seconds


def windows_of(task: MeasureTask) -> int:
    """Return the number of windows (at least 1) whose total length is closest to the configured
    duration."""
    run = cast(Run, task.run)
    return max(1, round(run.duration_s / open_loop_s(task, run.window_s)))


def rates(run: Run, tenants: Sequence[str], dedicated_rps: Mapping[str, float]) -> list[float]:
    """Return the rate of each tenant in requests/s; NaN if the rate depends on an unknown dedicated
    peak."""
    if run.rates_rps:
        return list(run.rates_rps)
    pairs = zip(tenants, run.percents_of_peak, strict=True)
    return [percent / 100 * dedicated_rps[name] for name, percent in pairs]


def soak(cell: CellUnderTest, server: ServerUnderTest, rates_rps: Sequence[float]) -> Soaked:
    """Offer load in consecutive windows. Stop early if the server or a client ends.

    No host stays idle for hours, so a soak test accepts more load of other processes than a search.
    A soak test also accepts a larger send lag, because late sends add noise to its readings, but no
    trend.
    """
    count = windows_of(cell.task)
    elapsed_s = open_loop_s(cell.task, cast(Run, cell.task.run).window_s)
    readings, invalid = list[Mapping[str, Any]](), list[Invalid]()
    try:
        with server.under_load() as system:
            for left in reversed(range(count)):
                window = open_loop(cell.task, system, PHASE, rates_rps, elapsed_s, ON_BUSY_HOST)
                keep(cell, system, window, left * window.elapsed_s)
                readings.append(reading(server.server))
                invalid += invalid_causes(window)
    except (ServerError, ClientError) as error:
        return Soaked(*outcome_of_death(error, len(readings) * elapsed_s), readings)
    return Soaked(*outcome_of_windows(invalid, count), readings)


def reading(server: RunningServer) -> dict[str, Any]:
    """Return the memory and the number of open files of the server's processes.

    Both values are None if the server is on another host or has ended.
    """
    table = process_table()
    pids = tree(table, server.pid) if server.pid is not None else set()
    memory_bytes, files = resources(table, pids) if pids else (None, None)
    return {"time_ns": time.monotonic_ns(), "memory_bytes": memory_bytes, "open_files": files}


def invalid_causes(window: Window) -> list[Invalid]:
    """Return why a window is invalid; an empty list for a valid window.

    A window in which a tenant misses its SLA is also valid, because a soak test does not test SLAs.
    """
    return [
        (Outcome.DISTURBED if tenant.disturbed else Outcome.CLIENT_LIMITED, tenant.reason)
        for tenant in window.invalid_tenants[:1]
    ]


def outcome_of_death(error: ServerError | ClientError, lived_s: float) -> tuple[Outcome, str]:
    """Return the outcome of a soak test in which the server or a client ended, and the reason.

    If a client ended, or if the server ended during the first window, the outcome is `failed`. If
    the server ended later, the outcome is `infeasible`, because this end is a result of the test.
    """
    if lived_s == 0:
        return Outcome.FAILED, str(error)
    is_result = isinstance(error, ServerError)
    reason = f"{error}, after {lived_s / 3600:.2g} h of load"
    return Outcome.INFEASIBLE if is_result else Outcome.FAILED, reason


def outcome_of_windows(invalid: Sequence[Invalid], count: int) -> tuple[Outcome, str]:
    """Return the outcome of a soak test with `count` windows, and the reason.

    The outcome is `ok` if at least half of the windows are valid.
    """
    if 2 * len(invalid) <= count:
        return Outcome.OK, ""
    ((outcome, _),) = Counter(outcome for outcome, _ in invalid).most_common(1)
    reason = next(reason for each, reason in reversed(invalid) if each is outcome)
    return outcome, f"{len(invalid)} of {count} windows are invalid; one of the reasons: {reason}"
