"""Run the experiment `aa`: measure the same saturation throughput repeatedly on restarted servers
(A/A test).

A closed loop keeps the server busy, so the throughput does not depend on random arrivals. The load
and the settings are always the same, so every difference between the throughputs comes from the
host.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from perseus.measurement.cell import CellUnderTest, Findings
from perseus.measurement.closed_loop import closed_loop
from perseus.measurement.live_system import LiveSystem
from perseus.measurement.server_under_test import server_under_test
from perseus.measurement.valid_windows import InvalidWindowError, valid_window
from perseus.measurement.windows import keep
from perseus.peak.durations import ATTEMPTS, PATIENCE_S, loop_s
from perseus.peak.outcome import Outcome
from perseus.peak.verdict import Tolerance
from perseus.peak.window import Window
from perseus.serving.failures import ServerError
from perseus.study.experiments.aa import Run
from perseus.study.tasks.measure import MeasureTask
from perseus.traffic.client import ClientError

PHASE: Final = "aa"

Rates = list[float]
"""Throughput in responses/s of each window on one server, in the order of the windows."""


def measure(cell: CellUnderTest) -> Findings:
    """Start the servers one after another, and offer load to each server."""
    run = cast(Run, cell.task.run)
    outcome, reason = Outcome.OK, ""
    record: Mapping[str, Any] = {}
    capacities_rps: list[Rates] = []
    try:
        for left in reversed(range(run.restarts)):
            with server_under_test(cell) as server:
                record = server.record
                with server.under_load() as system:
                    capacities_rps.append(of_one_server(cell, system, run, left))
            cell.say(
                f"server {len(capacities_rps)} of {run.restarts}: {rates_text(capacities_rps[-1])}"
            )
    except InvalidWindowError as error:
        outcome, reason = error.outcome, str(error)
    except (ServerError, ClientError) as error:
        if not record:  # without a started server, the cell has no results
            raise
        outcome, reason = Outcome.FAILED, f"server {len(capacities_rps) + 1}: {error}"
    found = {"outcome": outcome, "reason": reason, "capacities_rps": capacities_rps}
    return Findings({**record, **found})


def empty_record(cell: CellUnderTest) -> Mapping[str, Any]:
    return {"capacities_rps": []}


def load_s(task: MeasureTask) -> tuple[float, float]:
    """Return the usual duration and the longest duration of the load, in seconds.

    All windows have the same length. The longest duration assumes that each window is invalid until
    its last attempt.
    """
    run = cast(Run, task.run)
    windows = run.restarts * (run.windows + 1)
    seconds = windows * loop_s(task.search, task.slas)
    return seconds, (ATTEMPTS + 1) * seconds + run.restarts * PATIENCE_S


def of_one_server(cell: CellUnderTest, system: LiveSystem, run: Run, servers_left: int) -> Rates:
    """Return the throughput of all tenants together, in responses/s, in each window on one server.

    The first window warms the server up, and is not in the result. Raises InvalidWindowError if a
    window is invalid at every attempt, and ServerError if the server ends.
    """
    to_come = range(run.windows, -1, -1)
    rates_rps = [
        one_window(cell, system, run, left + servers_left * len(to_come)) for left in to_come
    ]
    return rates_rps[1:]


def one_window(cell: CellUnderTest, system: LiveSystem, run: Run, windows_left: int) -> float:
    """Run a window, and return the throughput of all tenants together in responses/s.

    The function repeats an invalid window.
    """

    def offer(tolerance: Tolerance) -> Window:
        window, _ = closed_loop(cell.task, system, PHASE, run.concurrency, tolerance)
        keep(cell, system, window, windows_left * window.elapsed_s)
        return window

    return sum(tenant.offered_rps for tenant in valid_window(system, offer).tenants)


def rates_text(rates_rps: Rates) -> str:
    return ", ".join(f"{rate:.1f}" for rate in rates_rps) + " responses/s in its windows"
