"""Compute the verdict on one window of load (docs/explanation/verdict.md).

INVALID means that the client did not offer the planned load, that other processes disturbed the
window, or that the busy server was temporarily slower than usual. FAIL means that too many requests
in the window are late, or that the server does not keep up with the load. PASS means that the
server keeps the SLA with the stated confidence. UNDECIDED means that the data suffice for no other
verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from perseus.peak import stats
from perseus.peak.system import Observation
from perseus.study.sla import Sla
from perseus.traffic.requests import MS, Requests, Status

CLIENT_CPU = 0.8
"""Largest share of its core that a client may use. A client that uses a larger share may limit the
throughput."""

HELD_UP_CPU = 0.1
"""If a client sends late and uses less than this share of its core, the host causes the delay, not
the client."""

BUSY_CPU = 0.4
"""If a client uses a larger share of its core, its own work may delay sends by a large part of the
latency limit of an SLA. If such a client sends late, the window is invalid, even if the latencies
keep the SLA."""

SENT, ANSWERED = 0.995, 0.99
"""Smallest share of requests that the client must send, and smallest share that the server must
answer. A few requests without a response hardly change a percentile, so the SLA does not show
them."""

NO_SLA = "a closed loop has no SLA"
"""Reason of the verdict `undecided`, which every valid window in a closed loop gets."""

RISING = 0.98
"""Confidence of the two-sided interval in the test whether a queue grows."""


@dataclass(frozen=True)
class Tolerance:
    """The disturbances that a valid window may have (docs/explanation/load.md).

    `other_load` is the largest share of the server's cores, and of the GPU's time, that other
    processes may use. The load of other processes includes the network code of the kernel, which
    uses a share of about 0.02 of the cores. `send_lag` is the largest allowed p99 of the send lag,
    as a share of the latency limit of the SLA. If `late_within` is true, a window with a longer
    send lag is also valid under two conditions: the latencies keep the SLA, and each client uses
    less than BUSY_CPU of its core. `slowed` is the largest factor by which the busy server may
    temporarily be slower than usual. If a window passes, a slowdown of any size does not make it
    invalid.
    """

    other_load: float
    send_lag: float
    late_within: bool = False
    slowed: float = 1.5

    def lag_ms(self, sla_ms: float) -> float:
        """Return the largest allowed p99 of the send lag in ms; at least 1 ms, because timers are
        not exact."""
        return max(1.0, self.send_lag * sla_ms)


ON_IDLE_HOST = Tolerance(other_load=0.1, send_lag=0.02)
"""The disturbances that a valid window may have on an idle host."""

ON_BUSY_HOST = Tolerance(other_load=0.5, send_lag=0.2, late_within=True)
"""The disturbances that a valid window may have on a busy host. Late sends only lengthen latencies.
Therefore a window that passes on a busy host would also pass on an idle host. The limits that
Perseus measures on a busy host are slightly too low."""


class Verdict(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    UNDECIDED = "undecided"
    INVALID = "invalid"


@dataclass(frozen=True)
class TenantWindow:
    """Statistics of one tenant in one window, after the settling time.

    `disturbed` says whether other processes, not the client, made the window invalid.
    """

    offered_rps: float
    requests: int
    effective_requests: float
    batches: int
    errors: int
    timeouts: int
    refused: int
    failed: int
    unsent: int
    p50_ms: float
    p95_ms: float
    p95_low_ms: float
    p95_high_ms: float
    p99_ms: float
    sla_percentile_ms: float
    sla_ms: float
    service_p50_ms: float
    exceedance: float
    exceedance_low: float
    exceedance_high: float
    completed_ratio: float
    backlog_growth_rps: float
    send_lag_p99_ms: float
    send_lag_limit_ms: float
    client_cpu: float
    other_cpu_share: float | None
    other_process: str
    other_gpu_share: float | None
    slowed: float
    verdict: Verdict
    reason: str
    exceedances: stats.Exceedances
    disturbed: bool

    @property
    def punctual(self) -> bool:
        """Return whether the client sent the requests on schedule (docs/explanation/load.md)."""
        return not self.send_lag_p99_ms > ON_IDLE_HOST.lag_ms(self.sla_ms)

    @property
    def host_is_busy(self) -> bool:
        """Return whether two conditions hold: the window is invalid, and other processes used more
        of the server's cores or GPU than ON_BUSY_HOST allows."""
        others, _ = other_load(self)
        return self.verdict is Verdict.INVALID and others > ON_BUSY_HOST.other_load

    def as_dict(self) -> dict[str, object]:
        values = asdict(self) | {"verdict": str(self.verdict)}
        del values["exceedances"], values["disturbed"]
        return values


def other_load(seen: Observation | TenantWindow) -> tuple[float, str]:
    """Return the share of the server that other processes used, and a text that states this share.

    The share refers to the server's cores or to its GPU, whichever share is larger.
    """
    return other_load_text(
        seen.other_cpu_share or 0.0, seen.other_gpu_share or 0.0, seen.other_process
    )


def other_load_text(on_cores: float, on_gpu: float, who: str) -> tuple[float, str]:
    """Return the larger of two shares, and a text that states this share.

    `on_cores` and `on_gpu` are the shares of the server's cores and of its GPU that other processes
    used. If the share of the cores is larger, the text also names the busiest process `who`.
    """
    share, what = max((on_cores, "cores"), (on_gpu, "GPU"))
    among = f", among them {who}" if who and what == "cores" else ""
    return share, f"other processes used {share:.0%} of the server's {what}{among}"


def counted(seen: Observation, tenant: int, settle_s: float, grace_s: float) -> Requests:
    """Return the counted requests of a tenant in a window.

    Counted requests have an intended send time between `settle_s` after the start of the window and
    `grace_s` before its end.
    """
    first_ns = seen.start_ns + round(settle_s * 1e9)
    return seen.requests[tenant].between(first_ns, seen.now_ns - round(grace_s * 1e9))


def judge(
    seen: Observation,
    tenant: int,
    sla: Sla,
    *,
    rate_rps: float,
    settle_s: float,
    grace_s: float,
    confidence: float,
    similar: Sequence[tuple[float, stats.Exceedances]] = (),
    slowed: float = 1.0,
    tolerance: Tolerance = ON_IDLE_HOST,
) -> TenantWindow:
    """Return the verdict on the counted requests of one tenant, at the one-sided confidence level
    `confidence`.

    `similar` contains earlier windows at similar loads, each with a weight. The function estimates
    the clustering of late requests from `similar` and from the present window `seen`. `slowed` is
    the temporary slowdown of the busy server relative to its usual speed (`peak.slowed`). In the
    result, `exceedance_low` and `exceedance_high` are each a one-sided bound at the level
    `confidence`.
    """
    part = counted(seen, tenant, settle_s, grace_s)
    # Unsent requests say nothing about the server.
    due = part.latency_ms(seen.now_ns)[part.status != Status.UNSENT]
    late = stats.exceedances(due, sla.latency_ms)
    weights, windows = zip((1.0, late), *similar, strict=True)
    dispersion = stats.dispersion(windows, weights)
    share = stats.exceedance(due, sla.latency_ms, 2 * confidence - 1, dispersion)
    p95_ms = stats.percentile_interval(due, 95)
    growth_rps, growing = _backlog(part, seen.requests[tenant], rate_rps, sla)
    if seen.queue_ms and _queue_rises(seen.queue_ms[tenant], settle_s, sla):
        growing = True
    # A late client sends bursts of one tenant, which also delay the other tenants.
    lags_ms = [
        stats.percentile(counted(seen, i, settle_s, grace_s).send_lag_ms(seen.now_ns), 99)
        for i in range(len(seen.requests))
    ]
    latest = int(np.argmax(np.nan_to_num(lags_ms)))
    latest_ms = np.nanmax([0.0, lags_ms[latest]])
    late_client = latest_ms > tolerance.lag_ms(sla.latency_ms)
    # If latencies keep the SLA despite late sends, punctual sends would keep the SLA, too.
    within = share.value <= sla.allowed and max(seen.client_cpu) < BUSY_CPU
    found = _Findings(
        offered_rps=rate_rps,
        requests=len(due),
        sent_ratio=float(np.mean(part.sent_ns > 0)) if len(part) else 1.0,
        completed_ratio=part.count(Status.OK) / len(due) if len(due) else 1.0,
        exceedance=share,
        send_lag_ms=float(latest_ms),
        is_late=lags_ms[tenant] > tolerance.lag_ms(sla.latency_ms),
        lag_is_too_long=late_client
        and not (tolerance.late_within and within)
        and not _overloaded(part, seen, sla, confidence, dispersion),
        growing=growing,
        client_cpu=seen.client_cpu[tenant],
        latest_client_cpu=seen.client_cpu[latest],
        other_load=other_load(seen),
        slowed=slowed,
        tolerance=tolerance,
    )
    verdict, reason, disturbed = _verdict(found, sla)
    return TenantWindow(
        offered_rps=rate_rps,
        requests=len(due),
        effective_requests=len(due) / dispersion,
        batches=len(stats.batches(due, stats.BATCHES)),
        errors=int(np.sum(part.status > Status.OK)),
        timeouts=part.count(Status.TIMEOUT),
        refused=part.count(Status.REFUSED),
        failed=part.count(Status.ERROR),
        unsent=part.count(Status.UNSENT),
        p50_ms=stats.percentile(due, 50),
        p95_ms=p95_ms.value,
        p95_low_ms=p95_ms.low,
        p95_high_ms=p95_ms.high,
        p99_ms=stats.percentile(due, 99),
        sla_percentile_ms=stats.percentile(due, sla.percentile),
        sla_ms=sla.latency_ms,
        service_p50_ms=stats.percentile((part.done_ns - part.sent_ns)[part.answered] / MS, 50),
        exceedance=share.value,
        exceedance_low=share.low,
        exceedance_high=share.high,
        completed_ratio=found.completed_ratio,
        backlog_growth_rps=growth_rps,
        send_lag_p99_ms=lags_ms[tenant],
        send_lag_limit_ms=tolerance.lag_ms(sla.latency_ms),
        client_cpu=seen.client_cpu[tenant],
        other_cpu_share=seen.other_cpu_share,
        other_process=seen.other_process,
        other_gpu_share=seen.other_gpu_share,
        slowed=slowed,
        verdict=verdict,
        reason=reason,
        exceedances=late,
        disturbed=disturbed,
    )


def judge_each(
    seen: Observation,
    slas: Sequence[Sla],
    rates_rps: Sequence[float],
    *,
    settle_s: float,
    grace_s: float,
    confidence: float,
    tolerance: Tolerance,
) -> tuple[TenantWindow, ...]:
    """Return the verdict on each tenant of a window, from the data of this window only."""
    return tuple(
        judge(
            seen,
            i,
            sla,
            rate_rps=rate_rps,
            settle_s=settle_s,
            grace_s=grace_s,
            confidence=confidence,
            tolerance=tolerance,
        )
        for i, (sla, rate_rps) in enumerate(zip(slas, rates_rps, strict=True))
    )


def without_sla(found: TenantWindow) -> TenantWindow:
    """Return the verdict on a tenant in a closed loop. The verdict INVALID remains. Every other
    verdict becomes UNDECIDED with the reason NO_SLA."""
    if found.verdict is Verdict.INVALID:
        return found
    return replace(found, verdict=Verdict.UNDECIDED, reason=NO_SLA)


@dataclass(frozen=True)
class _Findings:
    offered_rps: float
    requests: int
    sent_ratio: float
    completed_ratio: float
    exceedance: stats.Interval
    send_lag_ms: float
    is_late: bool
    lag_is_too_long: bool
    growing: bool
    client_cpu: float
    latest_client_cpu: float
    other_load: tuple[float, str]
    slowed: float
    tolerance: Tolerance


def _verdict(found: _Findings, sla: Sla) -> tuple[Verdict, str, bool]:
    """Return the verdict, its reason, and whether other processes, not the client, made the window
    invalid. The first rule whose condition is true determines the verdict."""
    share, n, fewest = found.exceedance, found.requests, stats.fewest_requests(sla.allowed)
    lag_ms, most_ms = found.send_lag_ms, found.tolerance.lag_ms(sla.latency_ms)
    client, (others, used) = found.client_cpu, found.other_load
    sent, answered = found.sent_ratio, found.completed_ratio
    held_up = found.latest_client_cpu < HELD_UP_CPU
    lag = f"send lag p99 {lag_ms:.3f} ms > {most_ms:.3f} ms"
    if not found.is_late:
        lag += " for another tenant, whose bursts of requests delay this tenant"
    elif held_up:
        lag += (
            f" although the client used only {found.latest_client_cpu:.0%} of its core: the host"
            " delayed the client"
        )
    invalid, fails = Verdict.INVALID, Verdict.FAIL
    rules = (
        (found.offered_rps == 0, Verdict.PASS, "no load"),
        # Disturbances of the measurement come before statements about the server.
        (client > CLIENT_CPU, invalid, f"the client used {client:.0%} of its core"),
        (others > found.tolerance.other_load, invalid, used),
        # If the client sends late, the client may have caused the late responses. This rule does
        # not apply to a server that misses the SLA even without the send lag. On a busy host, the
        # rule does not apply to latencies within the SLA, either.
        (found.lag_is_too_long, invalid, lag),
        # With the requests that the client dropped, even more requests would be late.
        (
            share.low > sla.allowed,
            fails,
            f"{share.value:.1%} of the requests take longer than {sla.latency_ms:g} ms",
        ),
        # A request that the client dropped has no response either, so this rule comes before the
        # rule for unanswered requests.
        (sent < SENT, invalid, f"the client sent {sent:.1%} of the requests"),
        (answered < ANSWERED, fails, f"the server answered {answered:.1%} of the requests"),
        (found.growing, fails, "the queue of the server grows"),
        # Few requests are enough to fail a window, but not to pass it.
        (
            n < fewest,
            Verdict.UNDECIDED,
            f"{n} requests are too few: an SLA on the p{sla.percentile:g} needs at least {fewest}",
        ),
        (share.high <= sla.allowed, Verdict.PASS, "within the SLA"),
    )
    undecided = (
        f"{share.low:.1%} to {share.high:.1%} of the requests take longer than"
        f" {sla.latency_ms:g} ms"
    )
    verdict, reason = next(
        ((verdict, reason) for applies, verdict, reason in rules if applies),
        (Verdict.UNDECIDED, undecided),
    )
    if found.slowed > found.tolerance.slowed and verdict in (fails, Verdict.UNDECIDED):
        slowed = f"the busy server was temporarily {found.slowed:.1f} times as slow as usual"
        return invalid, f"{slowed} ({reason})", True
    return verdict, reason, reason == used or (held_up and reason == lag)


def _overloaded(
    part: Requests, seen: Observation, sla: Sla, confidence: float, dispersion: float
) -> bool:
    """Return whether the server certainly misses the SLA, even if late sends of the client caused a
    part of the latencies.

    Many requests in flight at an overloaded server may delay the sends of the client. Therefore,
    from every latency, the function subtracts twice the longest send lag of all tenants. The
    function subtracts the send lag twice, because the client may send a request late and also read
    the response late. The server is overloaded if the reduced latencies miss an SLA with twice the
    latency limit.
    """
    lags_ms = (requests.send_lag_ms(seen.now_ns).max(initial=0) for requests in seen.requests)
    # The latency of a request that timed out ends at the time-out. The latency of a refused or
    # failed request is infinite.
    ended_ms = (part.done_ns - part.intended_ns) / MS
    latency_ms = np.where(part.status == Status.TIMEOUT, ended_ms, part.latency_ms(seen.now_ns))[
        part.status != Status.UNSENT
    ]
    share = stats.exceedance(
        latency_ms - 2 * float(max(lags_ms)), 2 * sla.latency_ms, 2 * confidence - 1, dispersion
    )
    return share.low > sla.allowed


def _backlog(part: Requests, whole: Requests, rate_rps: float, sla: Sla) -> tuple[float, bool]:
    """Return the growth of the number of requests in flight (1/s), and whether the server falls
    behind.

    `part` contains the counted requests, and `whole` contains all requests of the window. A request
    is in flight from its intended send time until its response. The function measures the growth
    from the first to the last counted request. The server falls behind if two conditions hold: the
    growth is significant, and the total growth exceeds the number of requests that arrive in half
    the latency limit of the SLA. Even below the limit of the server, the waiting time rises and
    falls, but by less than half the latency limit.
    """
    if len(part) < 20:
        return 0.0, False
    times_ns = np.linspace(part.intended_ns[0], part.intended_ns[-1], 21)
    sent = whole.status != Status.UNSENT  # unsent requests were never in flight
    done_ns = np.sort(whole.done_ns[sent & (whole.status != Status.PENDING)])
    started = np.searchsorted(whole.intended_ns[sent], times_ns)
    in_flight = started - np.searchsorted(done_ns, times_ns)
    seconds = (times_ns - times_ns[0]) / 1e9
    growth_rps, rises = stats.rising(seconds, in_flight, RISING)
    return growth_rps, rises and growth_rps * seconds[-1] > rate_rps * sla.latency_ms / 2000


def _queue_rises(readings: NDArray[np.float64], settle_s: float, sla: Sla) -> bool:
    """Return whether the server's queue time rises by more than half the latency limit of the SLA
    in the counted part of the window."""
    seconds, queue_ms = readings[readings[:, 0] >= settle_s].T
    if len(seconds) < 5:
        return False
    slope, rises = stats.rising(seconds, queue_ms, RISING)
    return rises and slope * (seconds[-1] - seconds[0]) > sla.latency_ms / 2
