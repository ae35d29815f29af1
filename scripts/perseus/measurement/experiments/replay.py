"""Run the experiment `replay`: offer bursty or recorded arrivals for minutes at fixed mean rates.

With several tenants, the experiment has one phase with all tenants, and one phase with each tenant
alone, on the same server. A tenant gets the same arrivals alone and beside the other tenants. The
difference between the latencies in these two phases shows the effect of the other tenants
(docs/explanation/replay.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, cast

import numpy as np

from perseus.measurement.cell import BlockedError, CellUnderTest, Findings
from perseus.measurement.closed_loop import closed_loop
from perseus.measurement.live_system import LiveSystem
from perseus.measurement.peaks.dedicated_peaks import DedicatedPeaks
from perseus.measurement.schedules import Schedule, schedules
from perseus.measurement.server_under_test import server_under_test
from perseus.measurement.valid_windows import first_valid_window
from perseus.measurement.windows import keep
from perseus.peak.attainment import (
    Attainment,
    Minute,
    ReplayVerdict,
    attained,
    late_from_send,
    verdict,
)
from perseus.peak.durations import ATTEMPTS, PATIENCE_S, grace_s, loop_s
from perseus.peak.fidelity import Fidelity, fidelity
from perseus.peak.outcome import Outcome
from perseus.peak.recovery import Burst, most_in_flight, recoveries
from perseus.peak.speed import IN_FLIGHT
from perseus.peak.verdict import ON_BUSY_HOST, ON_IDLE_HOST, Tolerance, judge_each
from perseus.peak.window import Window
from perseus.serving.failures import ServerError
from perseus.study.experiments.replay import ReplayPhase, Run
from perseus.study.tasks.measure import MeasureTask
from perseus.traffic.client import ClientError
from perseus.traffic.requests import Status

DRAIN_S: Final = 20.0
"""Longest time in seconds to wait for responses after the grace time (`grace_s`) at the end of a
window. The server may need this time to answer all requests of a burst."""

LOOKS_S: Final = 1.0
"""Time in seconds between two checks whether all responses have arrived."""

NONE: Final = np.empty(0)
"""Send times of a tenant without load."""

BURSTY: Final = Tolerance(ON_IDLE_HOST.other_load, ON_BUSY_HOST.send_lag, late_within=True)
"""Tolerance for windows with bursty arrivals. In a burst, several requests may have the same
intended send time, but the client sends them one after another. Therefore the allowed send lag is
larger than in ON_IDLE_HOST."""


@dataclass(frozen=True)
class Offered:
    """The result of one tenant in one window, a part of record.json.

    `window` is the number of the window in windows.parquet. `rate_rps` is the configured mean rate.
    `attained` is the share of requests within the latency limit of the SLA, and `attained_low` and
    `attained_high` are the ends of its 95 % interval. `requests_each_s` contains the number of
    requests in each second of the window. `within_each_s` contains, for each second, the number of
    requests within the latency limit.
    """

    phase: str
    tenant: str
    window: int
    rate_rps: float
    verdict: ReplayVerdict
    reason: str
    attained: float
    attained_low: float
    attained_high: float
    worst_minute: Minute
    bursts: tuple[Burst, ...]
    most_in_flight: int
    fidelity: Fidelity
    requests_each_s: tuple[int, ...]
    within_each_s: tuple[int, ...]


def measure(cell: CellUnderTest) -> Findings:
    """Offer the arrivals to all tenants together, and to each tenant alone."""
    task, run = cell.task, cast(Run, cell.task.run)
    outcome, reason, offered = Outcome.OK, "", list[Offered]()
    dedicated = DedicatedPeaks.read(cell.inputs.dedicated_records)
    if blocked := dedicated.why_blocked(task.tenant_names):
        raise BlockedError(blocked)
    with server_under_test(cell) as server:
        drawn = schedules(cell, run, dedicated.rps)
        try:
            with server.under_load() as system:
                for of_phase in each_phase(cell, system, run, drawn):
                    offered += of_phase
        except (ServerError, ClientError) as error:
            outcome, reason = Outcome.FAILED, str(error)
    if outcome is Outcome.OK:
        outcome, reason = offered_outcome(offered)
    found = {"outcome": outcome, "reason": reason, "offered": [asdict(each) for each in offered]}
    busiest = run.phases(len(task.tenants))[0].name
    watched = next((each.window for each in offered if each.phase == busiest), -1)
    return Findings({**server.record, **found}, watched_window=watched)


def empty_record(cell: CellUnderTest) -> Mapping[str, Any]:
    return {"offered": []}


def load_s(task: MeasureTask) -> tuple[float, float]:
    """Return how long the warm-up and all phases take, in seconds: usually, and at most.

    The longest duration assumes that each phase needs all its attempts.
    """
    run = cast(Run, task.run)
    warm_s, window_s = loop_s(task.search, task.slas), run.duration_s + grace_s(task.slas)
    windows = len(run.phases(len(task.tenants)))
    most_s = (ATTEMPTS + 1) * windows * (window_s + DRAIN_S) + PATIENCE_S
    return warm_s + windows * window_s, warm_s + most_s


def each_phase(
    cell: CellUnderTest, system: LiveSystem, run: Run, drawn: Sequence[Schedule]
) -> Iterator[list[Offered]]:
    """Warm the server up. Then yield, for each phase, the results of the tenants with load.

    The phases are in random order, so that a slow change of the server's speed does not look like a
    difference between phases. Raises ServerError if the server ends.
    """
    phases = run.phases(len(drawn))
    usual_s = run.duration_s + grace_s(cell.task.slas)
    warm_up, _ = closed_loop(cell.task, system, "warm_up", IN_FLIGHT)
    keep(cell, system, warm_up, len(phases) * usual_s)
    order = cell.own_stream.permutation(len(phases)).tolist()
    for done, number in enumerate(order, start=1):
        left_s = (len(phases) - done) * usual_s
        yield one_phase(cell, system, phases[number], drawn, left_s)


def one_phase(
    cell: CellUnderTest,
    system: LiveSystem,
    phase: ReplayPhase,
    drawn: Sequence[Schedule],
    left_s: float,
) -> list[Offered]:
    """Return the results of the tenants with load in one phase.

    The function repeats an invalid window. The last attempt accepts a larger load of other
    processes than the earlier attempts. If all attempts are invalid, the function returns the
    results of the last attempt.
    """

    def offer(tolerance: Tolerance) -> Window:
        window = one_window(cell.task, system, phase, drawn, tolerance)
        keep(cell, system, window, left_s)
        return window

    window = first_valid_window(system, offer, BURSTY)
    number = system.ended[-1].number
    return [tenant_result(cell.task, window, number, i, drawn[i].rate_rps) for i in phase.loaded]


def one_window(
    task: MeasureTask,
    system: LiveSystem,
    phase: ReplayPhase,
    drawn: Sequence[Schedule],
    tolerance: Tolerance,
) -> Window:
    """Offer the arrivals of the tenants with load, and then wait for all responses.

    The function waits for at most `grace_s` plus DRAIN_S seconds.
    """
    duration_s = cast(Run, task.run).duration_s
    times_s = [each.times_s if i in phase.loaded else NONE for i, each in enumerate(drawn)]
    with system.offer_at(times_s) as load:
        seen = load.until(duration_s + grace_s(task.slas))
        last_s = seen.elapsed_s + DRAIN_S
        while any(each.count(Status.PENDING) for each in seen.requests) and seen.elapsed_s < last_s:
            seen = load.until(min(seen.elapsed_s + LOOKS_S, last_s))
    tenants = judge_each(
        seen,
        task.slas,
        [len(times) / duration_s for times in times_s],
        settle_s=0.0,
        grace_s=seen.elapsed_s - duration_s,  # all requests count
        confidence=task.search.confidence,
        tolerance=tolerance,
    )
    return Window(phase.name, np.nan, 0.0, seen.elapsed_s, tenants, seen)


def tenant_result(
    task: MeasureTask, window: Window, number: int, tenant: int, rate_rps: float
) -> Offered:
    """Return the result of a tenant in a window. `number` is the number of the window in
    windows.parquet."""
    seen, sla = window.seen, task.slas[tenant]
    requests = seen.requests[tenant]
    late = late_from_send(requests, sla, seen.now_ns)
    found, reason = verdict(window.tenants[tenant], sla, late)
    share = attained(requests, sla, seen.now_ns)
    by_second = Attainment.of(seen, tenant, sla, int(np.ceil(cast(Run, task.run).duration_s)))
    return Offered(
        phase=window.phase,
        tenant=task.tenant_names[tenant],
        window=number,
        rate_rps=rate_rps,
        verdict=found,
        reason=reason,
        attained=share.value,
        attained_low=share.low,
        attained_high=share.high,
        worst_minute=by_second.worst_minute(),
        bursts=tuple(recoveries(requests, seen.start_ns, by_second.back(sla))),
        most_in_flight=most_in_flight(requests),
        fidelity=fidelity(requests),
        requests_each_s=tuple(by_second.requests.tolist()),
        within_each_s=tuple(by_second.within.tolist()),
    )


def offered_outcome(offered: Sequence[Offered]) -> tuple[Outcome, str]:
    """Return the outcome of the cell, and the reason.

    The outcome is `ok` even if a tenant misses its SLA, because a missed SLA is a valid result.
    """
    ends = ((each.verdict.outcome, each.reason) for each in offered)
    return next((end for end in ends if end[0] is not Outcome.OK), (Outcome.OK, ""))
