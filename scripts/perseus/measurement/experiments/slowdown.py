"""Run the experiment `slowdown`: measure the latency of every tenant, alone and beside every other
tenant, at the same rate.

Each window with two tenants comes directly between a window with only the first tenant and a window
with only the second tenant. Therefore a change of the host's speed hardly affects the comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final, cast

import numpy as np

from perseus.measurement.cell import BlockedError, CellUnderTest, Findings
from perseus.measurement.closed_loop import closed_loop
from perseus.measurement.open_loop import open_loop
from perseus.measurement.pairs import all_pairs
from perseus.measurement.peaks.dedicated_peaks import DedicatedPeaks
from perseus.measurement.server_under_test import server_under_test
from perseus.measurement.valid_windows import InvalidWindowError, valid_window
from perseus.measurement.windows import keep
from perseus.peak import stats
from perseus.peak.durations import ATTEMPTS, PATIENCE_S, grace_s, loop_s, window_s
from perseus.peak.outcome import Outcome
from perseus.peak.speed import IN_FLIGHT
from perseus.peak.system import System
from perseus.peak.verdict import Tolerance, Verdict, counted
from perseus.peak.window import Phase, Window
from perseus.serving.failures import ServerError
from perseus.study.experiments.slowdown import Run
from perseus.study.tasks.measure import MeasureTask
from perseus.traffic.client import ClientError

PHASE: Final = "slowdown"
SLOW_RPS: Final = 50.0
"""If the study states no rate in requests/s, the function `load_s` assumes this rate for each
tenant. At this rate, no window ends early, and no window is longer than usual."""

OnWindow = Callable[[Window, float], None]
"""Function that the experiment calls after each window, with the remaining seconds of load."""


@dataclass(frozen=True)
class Seen:
    """Statistics of a tenant's counted requests in one window, and the verdict on the tenant's SLA.

    `mean_ms` is the mean latency of the answered requests, with a 95 % interval by batch means.
    """

    requests: int
    completed_ratio: float
    verdict: Verdict
    mean_ms: stats.Interval
    p95_ms: stats.Interval


@dataclass(frozen=True)
class Step:
    """One window of the experiment: the tenants with load, and their results.

    Each round contains all pairs of tenants. `round` is the number of the round, counted from 1.
    `seen` contains the results by tenant. If the window was invalid at every attempt, `outcome` and
    `reason` state the cause, and `seen` is empty.
    """

    round: int
    tenants: tuple[str, ...]
    outcome: Outcome
    reason: str
    seen: Mapping[str, Seen]


def measure(cell: CellUnderTest) -> Findings:
    """Measure, in each round, every pair of tenants, and each tenant of a pair alone."""
    task = cell.task
    dedicated = DedicatedPeaks.read(cell.inputs.dedicated_records)
    if blocked := dedicated.why_blocked(task.tenant_names):
        raise BlockedError(blocked)
    rates_rps = offered_rps(cast(Run, task.run), task.tenant_names, dedicated.rps)
    outcome, reason, steps = Outcome.OK, "", list[Step]()
    with server_under_test(cell) as server:
        try:
            with server.under_load() as system:
                warm_up, _ = closed_loop(task, system, Phase.WARM_UP, IN_FLIGHT)
                keep(cell, system, warm_up, load_s(task)[0])
                rng = cell.own_stream
                for step in offered(task, system, rates_rps, rng, partial(keep, cell, system)):
                    steps.append(step)
                    if step.outcome is not Outcome.OK:
                        cell.say(
                            f"{' beside '.join(step.tenants)}: no valid window ({step.outcome});"
                            " the experiment continues"
                        )
        except (ServerError, ClientError) as error:
            outcome, reason = Outcome.FAILED, str(error)
    if outcome is Outcome.OK:
        outcome, reason = of_pairs(steps)
    record = {
        **server.record,
        "outcome": outcome,
        "reason": reason,
        "rates_rps": dict(zip(task.tenant_names, rates_rps, strict=True)),
        "dedicated_rps": dedicated.rps,
        "steps": [asdict(step) for step in steps],
    }
    return Findings(record)


def empty_record(cell: CellUnderTest) -> Mapping[str, Any]:
    names = cell.task.tenant_names
    return {"rates_rps": dict.fromkeys(names, np.nan), "dedicated_rps": {}, "steps": []}


def load_s(task: MeasureTask) -> tuple[float, float]:
    """Return how long the warm-up and all rounds take, in seconds: usually, and at most.

    The longest duration assumes that each window of a round is invalid until its last attempt.
    """
    run = cast(Run, task.run)
    rates_rps = [SLOW_RPS if run.rate_rps is None else run.rate_rps] * len(task.tenants)
    steps = run.rounds * len(all_pairs(len(task.tenants), np.random.default_rng(0)))
    steps_s = steps * window_s(Phase.NEAR_LIMIT, task.search, task.slas, rates_rps)
    warm_up_s = loop_s(task.search, task.slas)
    return warm_up_s + steps_s, warm_up_s + (ATTEMPTS + 1) * steps_s + PATIENCE_S


def offered_rps(
    run: Run, names: Sequence[str], dedicated_rps: Mapping[str, float]
) -> tuple[float, ...]:
    """Return the rate of each tenant; NaN if the rate depends on an unknown dedicated peak."""
    if run.percent_of_peak is None:
        return (cast(float, run.rate_rps),) * len(names)
    return tuple(run.percent_of_peak / 100 * dedicated_rps[name] for name in names)


def offered(
    task: MeasureTask,
    system: System,
    rates_rps: Sequence[float],
    rng: np.random.Generator,
    on_window: OnWindow,
) -> Iterator[Step]:
    """Yield each window of all rounds as soon as the window has ended.

    If a window is invalid at every attempt, the experiment continues with the next window. Raises
    ServerError if the server ends.
    """
    to_come = [
        (number, tuple(rate if i in step else 0.0 for i, rate in enumerate(rates_rps)))
        for number in range(1, cast(Run, task.run).rounds + 1)
        for step in all_pairs(len(rates_rps), rng)
    ]
    lengths_s = [window_s(Phase.NEAR_LIMIT, task.search, task.slas, rates) for _, rates in to_come]
    for i, (number, rates) in enumerate(to_come):
        yield one_step(task, system, number, rates, on_window, sum(lengths_s[i + 1 :]))


def one_step(
    task: MeasureTask,
    system: System,
    number: int,
    rates_rps: tuple[float, ...],
    on_window: OnWindow,
    seconds_left: float,
) -> Step:
    """Run one window of a round. The function repeats an invalid window.

    The window is as long as a window near the limit (phase `near_limit`) in a search, and gets its
    verdict by the same rules.
    """
    loaded = {name: i for i, name in enumerate(task.tenant_names) if rates_rps[i] > 0}
    elapsed_s = window_s(Phase.NEAR_LIMIT, task.search, task.slas, rates_rps)

    def offer(tolerance: Tolerance) -> Window:
        window = open_loop(task, system, PHASE, rates_rps, elapsed_s, tolerance)
        on_window(window, seconds_left)
        return window

    try:
        window = valid_window(system, offer)
    except InvalidWindowError as error:
        return Step(number, tuple(loaded), error.outcome, str(error), {})
    seen = {name: seen_of(window, i, grace_s(task.slas)) for name, i in loaded.items()}
    return Step(number, tuple(loaded), Outcome.OK, "", seen)


def seen_of(window: Window, tenant: int, grace: float) -> Seen:
    """Return the latencies and the verdict of one tenant in a window."""
    part, judged = counted(window.seen, tenant, window.settle_s, grace), window.tenants[tenant]
    latency_ms = part.latency_ms(window.seen.now_ns)[part.answered]
    mean = stats.mean_interval([np.mean(b) for b in stats.batches(latency_ms, stats.BATCHES)])
    return Seen(
        requests=judged.requests,
        completed_ratio=judged.completed_ratio,
        verdict=judged.verdict,
        mean_ms=stats.Interval(mean.value, max(mean.low, 0.0), mean.high),
        p95_ms=stats.Interval(judged.p95_ms, judged.p95_low_ms, judged.p95_high_ms),
    )


def of_pairs(steps: Sequence[Step]) -> tuple[Outcome, str]:
    """Return the outcome of the cell, and the reason. The outcome is `ok` if at least one pair has
    a valid window."""
    pairs = [step for step in steps if len(step.tenants) > 1]
    if any(step.outcome is Outcome.OK for step in pairs):
        return Outcome.OK, ""
    return pairs[-1].outcome, pairs[-1].reason
