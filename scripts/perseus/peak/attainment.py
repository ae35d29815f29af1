"""Compute how well a window of bursty load kept its SLA: over time, in its worst minute, and in
total (docs/explanation/replay.md).

A request belongs to the second of its intended send time, however late it was sent or answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perseus.peak import stats
from perseus.peak.outcome import Outcome
from perseus.peak.system import Observation
from perseus.peak.verdict import ON_IDLE_HOST, TenantWindow, Verdict, other_load
from perseus.study.sla import Sla
from perseus.traffic.requests import MS, Requests, Status

Counts = NDArray[np.int64]
MINUTE: Final = 60


@dataclass(frozen=True)
class Minute:
    """A minute of a window, from `start_s` on, or a whole shorter window: its requests, and those
    within the SLA."""

    start_s: int
    requests: int
    within: int


@dataclass(frozen=True)
class Attainment:
    """Arrays by second since the start of a window, both of shape (n,): requests, and requests
    within the SLA. Requests that the client dropped do not count."""

    requests: Counts
    within: Counts

    @classmethod
    def of(cls, seen: Observation, tenant: int, sla: Sla, seconds: int) -> Attainment:
        """The attainment of a tenant in a window with this many seconds of arrivals."""
        requests = seen.requests[tenant]
        due = requests.status != Status.UNSENT
        second = (requests.intended_ns - seen.start_ns) // 10**9
        within = due & (requests.latency_ms(seen.now_ns) <= sla.latency_ms)
        return cls(*(np.bincount(second[each], minlength=seconds) for each in (due, within)))

    def back(self, sla: Sla) -> NDArray[np.bool_]:
        """Whether each second keeps the SLA or has no requests."""
        return np.asarray(self.requests - self.within <= sla.allowed * self.requests)

    def worst_minute(self) -> Minute:
        """The minute with the lowest attainment; the first of several."""
        length = min(MINUTE, len(self.requests))
        requests, within = (
            np.convolve(each, np.ones(length, np.int64), "valid")
            for each in (self.requests, self.within)
        )
        shares = np.where(requests > 0, within / np.maximum(requests, 1), np.inf)
        start = int(np.argmin(shares))
        return Minute(start, int(requests[start]), int(within[start]))


def attained(requests: Requests, sla: Sla, now_ns: int) -> stats.Interval:
    """The share of requests within the SLA's latency, with a 95 % interval (batch means)."""
    latency_ms = requests.latency_ms(now_ns)[requests.status != Status.UNSENT]
    dispersion = stats.dispersion([stats.exceedances(latency_ms, sla.latency_ms)], [1.0])
    late = stats.exceedance(latency_ms, sla.latency_ms, 0.95, dispersion)
    return stats.Interval(1 - late.value, 1 - late.high, 1 - late.low)


def late_from_send(requests: Requests, sla: Sla, now_ns: int) -> float:
    """The share of requests that were late even from their actual send.

    Requests that the client has not sent do not count, since that is a failure of the client.
    """
    sent = requests.sent_ns > 0
    waited_ms = (requests.sent_ns - requests.intended_ns) / MS
    late = (requests.latency_ms(now_ns) - waited_ms)[sent] > sla.latency_ms
    due = int(np.sum(requests.status != Status.UNSENT))
    return int(late.sum()) / due if due else 0.0


class ReplayVerdict(StrEnum):
    """The verdict on one tenant in one window of a replay."""

    OK = "ok"
    SLA_MISSED = "sla_missed"
    CLIENT_LIMITED = "client_limited"
    DISTURBED = "disturbed"

    @property
    def outcome(self) -> Outcome:
        """The outcome of its cell; a missed SLA is a result, not a failure."""
        return Outcome.OK if self is ReplayVerdict.SLA_MISSED else Outcome(self)


def verdict(seen: TenantWindow, sla: Sla, late_from_send: float) -> tuple[ReplayVerdict, str]:
    """Return the first rule that applies, and its reason.

    Disturbances by the client or the host never count against the server. A window that keeps the
    SLA in spite of them would also have kept it without.
    """
    missed = f"{1 - seen.exceedance:.1%} within {sla.latency_ms:g} ms"
    invalid = seen.verdict is Verdict.INVALID
    others, used = other_load(seen)
    sends = f"{1 - late_from_send:.1%} counted from their actual send times, which were late"
    rules = (
        (invalid and seen.disturbed, ReplayVerdict.DISTURBED, seen.reason),
        (invalid, ReplayVerdict.CLIENT_LIMITED, seen.reason),
        (seen.requests == 0, ReplayVerdict.OK, "no request arrived"),
        (seen.exceedance <= sla.allowed, ReplayVerdict.OK, ""),
        (late_from_send <= sla.allowed, ReplayVerdict.CLIENT_LIMITED, f"{missed}, but {sends}"),
        (others > ON_IDLE_HOST.other_load, ReplayVerdict.DISTURBED, f"{missed}, while {used}"),
    )
    found = ((each, reason) for applies, each, reason in rules if applies)
    return next(found, (ReplayVerdict.SLA_MISSED, missed))
