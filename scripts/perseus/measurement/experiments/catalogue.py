"""Run the experiment `catalogue`: measure a model in a short time (docs/explanation/catalogue.md).

The experiment first saturates the server, and measures the service time of each request. From these
service times, the simulation of a queue computes the largest rate that keeps the SLA. Finally, the
experiment tests a lower rate in a window with the arrivals of the study. If the server keeps the
SLA in this window, the tested rate is certified.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from perseus.measurement.accuracy import Accuracy, accuracy
from perseus.measurement.cell import CellUnderTest, Findings
from perseus.measurement.closed_loop import answered_rps
from perseus.measurement.in_process import (
    MIN_INFERENCES,
    InProcessError,
    has_backend,
    in_process_ms,
)
from perseus.measurement.live_system import LiveSystem
from perseus.measurement.server_under_test import ServerUnderTest, server_under_test
from perseus.measurement.valid_windows import InvalidWindowError, valid_window
from perseus.measurement.windows import keep
from perseus.peak.durations import ATTEMPTS, PATIENCE_S
from perseus.peak.outcome import Outcome
from perseus.peak.queue_limit import Discipline, Precision, limit_scale
from perseus.peak.speed import IN_FLIGHT
from perseus.peak.stats import Floats, fewest_requests
from perseus.peak.system import Observation
from perseus.peak.verdict import Tolerance, Verdict, judge_each, without_sla
from perseus.peak.window import Window
from perseus.serving.failures import ServerError
from perseus.study.architectures import default_weights
from perseus.study.experiments.catalogue import Run
from perseus.study.sla import Sla
from perseus.study.tasks.measure import MeasureTask

FULL, WITHIN = "full", "within"
"""Phases of windows: a closed loop that saturates the server, and an open loop at a rate that
should keep the SLA."""

CERTIFY_AT: Final = (0.8, 0.6)
"""Rates to test, as shares of the simulated limit. The experiment tests the rates in this order.
The first rate whose window passes is the certified rate."""

REQUESTS: Final = 300
"""Number of requests that should count in a window. More or fewer requests may count, because the
counted part of a window takes at least SHORTEST_S and at most LONGEST_S seconds."""
SHORTEST_S, LONGEST_S = 3.0, 8.0
MAX_COUNTED_S: Final = 20.0
"""Longest counted part of a certification window, in seconds. If a slow model needs more time to
get enough requests for a verdict, the experiment certifies no rate."""

GIGAS_PER_S: Final = 30.0
"""Speed of one core in billions of multiply-add operations per second. Perseus assumes this speed
to estimate how long the experiment takes."""

SIMULATED: Final = Precision(requests=20_000, of_each=20_000, most=20_000, halvings=12)


@dataclass(frozen=True)
class Limit:
    """The largest rate at which a server keeps an SLA, and the certified rate, in requests/s.

    `sla_ms` is the latency limit of the SLA. `stated` is the configuration key that sets the
    latency limit: "times_unloaded" or "latency". `limit_rps` is the largest rate, and `low_rps` and
    `high_rps` are the ends of its 95 % interval. The interval has the same relative width as the
    interval of the saturation throughput. Unknown rates are NaN.
    """

    stated: str
    sla_ms: float
    limit_rps: float
    low_rps: float
    high_rps: float
    certified_rps: float
    reason: str


def measure(cell: CellUnderTest) -> Findings:
    """Measure the model first without a server, and then on a server."""
    run, alone, why_not = cast(Run, cell.task.run), np.empty(0), ""
    if has_backend(cell.task) and cell.inputs.repository is not None:
        cell.say("measuring the inference times without a server")
        log = cell.server_log.with_suffix(".in_process")
        try:
            asked = (cell.inputs.repository, cell.task, cell.server_cores, run.in_process_s, log)
            alone = in_process_ms(*asked)
        except InProcessError as error:
            why_not = str(error)
        finally:
            log.unlink(missing_ok=True)
    outcome, reason, full, limits = Outcome.OK, "", (np.nan,) * 3, list[Limit]()
    with server_under_test(with_longer_sla(cell, alone)) as server:
        found = _accuracy(cell, server)
        try:
            with server.under_load() as system:
                (unloaded_ms,) = server.unloaded_p50_ms.values()
                times_s, full = saturated_server(cell, system, unloaded_ms)
                for stated, sla in slas(cell.task, unloaded_ms):
                    limits.append(within(cell, system, stated, sla, unloaded_ms, times_s, full))
        except InvalidWindowError as error:
            outcome, reason = error.outcome, str(error)
        except ServerError as error:
            outcome, reason = Outcome.FAILED, str(error)
    return Findings(
        {
            **server.record,
            "outcome": outcome,
            "reason": reason,
            "in_process_ms": float(np.median(alone)) if len(alone) else None,
            "in_process_error": why_not,
            "accuracy": asdict(found) if found else None,
            **dict(zip(("full_rps", "full_low_rps", "full_high_rps"), full, strict=True)),
            "limits": [asdict(each) for each in limits],
        }
    )


def empty_record(cell: CellUnderTest) -> Mapping[str, Any]:
    full = dict.fromkeys(("full_rps", "full_low_rps", "full_high_rps"))
    return {"in_process_ms": None, "in_process_error": "", "accuracy": None, **full, "limits": []}


def _accuracy(cell: CellUnderTest, server: ServerUnderTest) -> Accuracy | None:
    (tenant,), path = server.tenants, cell.inputs.labelled
    if path is None:
        return None
    cell.say(f"measuring the accuracy on {tenant.settings.labelled_images} labelled images")
    return accuracy(tenant, path)


def load_s(task: MeasureTask) -> tuple[float, float]:
    """Return how long the experiment sends requests, in seconds: usually, and at most.

    The function estimates the usual duration from the number of operations of the model. The
    longest duration assumes that each window is invalid until its last attempt, and that each
    attempt has the maximum length.
    """
    run, (tenant, *_) = cast(Run, task.run), task.tenants
    known = default_weights().get(tenant.model)
    gigas = tenant.request_batch_size * (known.gflops if known else 1.0)
    unloaded_s = gigas / GIGAS_PER_S / task.server.cores
    full_s = max(1.0, 2 * unloaded_s) + _counted_s(1 / unloaded_s)
    within_s = sum(_usual_s(sla, unloaded_s) for _, sla in slas(task, 1000 * unloaded_s))
    windows = 1 + 2 * len(CERTIFY_AT)
    most_s = windows * (ATTEMPTS + 1) * (MAX_COUNTED_S + 4 * LONGEST_S) + PATIENCE_S
    labelled_s = tenant.labelled_images / tenant.request_batch_size * unloaded_s
    about_s = max(run.in_process_s, MIN_INFERENCES * unloaded_s) + full_s + within_s
    return min(about_s, most_s) + labelled_s, most_s + ATTEMPTS * labelled_s


def _counted_s(rate_rps: float) -> float:
    """Return the length of the counted part of a window with the rate `rate_rps`, in seconds."""
    return float(np.clip(REQUESTS / rate_rps, SHORTEST_S, LONGEST_S))


def _settle_s(sla: Sla) -> float:
    return float(np.clip(4 * sla.latency_ms / 1000, 1.0, 10.0))


def _certifying_s(sla: Sla, rate_rps: float) -> float:
    """Return the length of the counted part of a certification window, in seconds.

    If the result exceeds MAX_COUNTED_S, the experiment does not certify the rate `rate_rps`.
    """
    return max(_counted_s(rate_rps), 1.2 * fewest_requests(sla.allowed) / rate_rps)


def _usual_s(sla: Sla, unloaded_s: float) -> float:
    """Return the usual length of the certification window for one SLA, in seconds; 0 without such a
    window. `unloaded_s` is the inference time of the model in seconds."""
    counted_s = _certifying_s(sla, 0.6 / unloaded_s)
    if 1000 * unloaded_s > sla.latency_ms or counted_s > MAX_COUNTED_S:
        return 0.0
    return _settle_s(sla) + counted_s + 2 * sla.latency_ms / 1000


def with_longer_sla(cell: CellUnderTest, alone_ms: Floats) -> CellUnderTest:
    """Return the cell with a latency limit that is long enough for a saturated server.

    At the end of a window, the client waits for responses in proportion to the latency limit. A
    saturated server may need more time than the configured limit allows.
    """
    (tenant,) = cell.task.tenants
    full_ms = IN_FLIGHT * float(np.median(alone_ms)) if len(alone_ms) else 0.0
    longest_ms = max(tenant.sla.latency_ms, full_ms)
    sla = tenant.sla.model_copy(update={"latency_ms": longest_ms})
    tenants = (tenant.model_copy(update={"sla": sla}),)
    return replace(cell, task=cell.task.model_copy(update={"tenants": tenants}))


def slas(task: MeasureTask, unloaded_ms: float) -> Iterator[tuple[str, Sla]]:
    """Yield pairs of a configuration key and the SLA whose latency limit this key sets."""
    (own,), run = task.slas, cast(Run, task.run)
    multiple_ms = run.times_unloaded * unloaded_ms
    yield "times_unloaded", own.model_copy(update={"latency_ms": multiple_ms})
    yield "latency", own


def saturated_server(
    cell: CellUnderTest, system: LiveSystem, unloaded_ms: float
) -> tuple[Floats, tuple[float, float, float]]:
    """Return the service times and the throughput of a saturated server.

    The service times are the times between consecutive responses in seconds, shape (n,). The
    throughput is in requests/s, with a 95 % interval: (value, low, high). Raises InvalidWindowError
    if the window is invalid at every attempt, and ServerError if the server answers almost no
    request.
    """
    settle_s = max(1.0, 2 * unloaded_ms / 1000)
    counted_s, settle_ns = _counted_s(1000 / unloaded_ms), round(settle_s * 1e9)

    def offer(tolerance: Tolerance) -> Window:
        elapsed_s = settle_s + counted_s
        with system.offer_closed([IN_FLIGHT], elapsed_s) as load:
            seen = load.until(elapsed_s)
        tenants = judge_each(
            seen,
            cell.task.slas,
            [answered_rps(_done_ns(seen), seen.start_ns + settle_ns, seen.now_ns).value],
            settle_s=settle_s,
            grace_s=0.0,
            confidence=cell.task.search.confidence,
            tolerance=tolerance,
        )
        tenants = tuple(map(without_sla, tenants))
        window = Window(FULL, float(IN_FLIGHT), settle_s, elapsed_s, tenants, seen)
        keep(cell, system, window, 2 * (SHORTEST_S + 2.0))
        return window

    seen = valid_window(system, offer).seen
    done_ns, settled_ns = _done_ns(seen), seen.start_ns + settle_ns
    rate = answered_rps(done_ns, settled_ns, seen.now_ns)
    gaps_s = np.diff(done_ns[done_ns >= settled_ns]) / 1e9
    if not len(gaps_s):
        raise ServerError(f"the server answered almost no request in {settle_s + counted_s:.0f} s")
    return gaps_s, (rate.value, max(rate.low, 0.0), rate.high)


def _done_ns(seen: Observation) -> NDArray[np.int64]:
    """Return the times of all responses in ascending order."""
    (requests,) = seen.requests
    return np.sort(requests.done_ns[requests.answered])


@dataclass(frozen=True)
class _Work:
    sla: Sla
    work_s: Floats
    away_s: float


def within(
    cell: CellUnderTest,
    system: LiveSystem,
    stated: str,
    sla: Sla,
    unloaded_ms: float,
    times_s: Floats,
    full: tuple[float, float, float],
) -> Limit:
    """Return the largest rate at which the server keeps an SLA, and the certified rate.

    `times_s` and `full` are the results of `saturated_server`. Raises InvalidWindowError if a
    window is invalid at every attempt.
    """
    no_limit = partial(Limit, stated, sla.latency_ms)
    if unloaded_ms > sla.latency_ms:
        why = (
            f"even without other load, single requests take {unloaded_ms:.4g} ms (median), and the"
            f" SLA allows {sla.latency_ms:.4g} ms"
        )
        return no_limit(np.nan, np.nan, np.nan, np.nan, why)
    away_s = max(unloaded_ms / 1000 - float(np.median(times_s)), 0.0)
    late = float(np.mean(times_s + away_s > sla.latency_ms / 1000))
    if late > sla.allowed:
        why = (
            f"even without queueing, {100 * late:.3g}% of the requests take longer than"
            f" {sla.latency_ms:g} ms, more late requests than the SLA allows"
        )
        return no_limit(np.nan, np.nan, np.nan, np.nan, why)
    limit_rps = limit_scale(
        [_Work(sla, times_s, away_s)],
        lambda rate_rps: (rate_rps,),
        system.arrivals,
        Discipline.FIRST_COME,
        high=1 / float(times_s.mean()),
        precision=SIMULATED,
    )
    low_rps, high_rps = (limit_rps * end / full[0] for end in full[1:])
    limit = partial(no_limit, limit_rps, low_rps, high_rps)
    reason = ""
    for share in CERTIFY_AT:
        certified_rps = share * limit_rps
        counted_s = _certifying_s(sla, certified_rps)
        if counted_s > MAX_COUNTED_S:
            why = (
                f"at {certified_rps:.3g} requests/s, a window of {MAX_COUNTED_S:.0f} s has too few"
                " requests to certify the SLA"
            )
            return limit(np.nan, why)
        window = valid_window(system, partial(_window, cell, system, sla, certified_rps, counted_s))
        if window.verdict is Verdict.PASS:
            return limit(certified_rps, "")
        reason = f"at {certified_rps:.3g} requests/s: {window.tenants[0].reason}"
    return limit(np.nan, reason)


def _window(
    cell: CellUnderTest,
    system: LiveSystem,
    sla: Sla,
    rate_rps: float,
    counted_s: float,
    tolerance: Tolerance,
) -> Window:
    settle_s = _settle_s(sla)
    grace_s = 2 * sla.latency_ms / 1000
    elapsed_s = settle_s + counted_s + grace_s
    with system.offer([rate_rps], elapsed_s) as load:
        seen = load.until(elapsed_s)
    tenants = judge_each(
        seen,
        [sla],
        [rate_rps],
        settle_s=settle_s,
        grace_s=grace_s,
        confidence=cell.task.search.confidence,
        tolerance=tolerance,
    )
    window = Window(WITHIN, rate_rps, settle_s, elapsed_s, tenants, seen)
    keep(cell, system, window, SHORTEST_S + 2.0)
    return window
