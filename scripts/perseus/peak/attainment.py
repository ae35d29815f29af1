"""How a window of bursty load kept its SLA: over time, in its worst minute, and on the whole
(docs/explanation/replay.md).

A request belongs to the second in which it was intended, however late it was sent or answered.
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
from perseus.peak.verdict import QUIET, TenantWindow, Verdict, used_by_others
from perseus.study.sla import Sla
from perseus.traffic.requests import MS, Requests, Status

Counts = NDArray[np.int64]
MINUTE: Final = 60


@dataclass(frozen=True)
class Minute:
    """60 s from `start_s` on, or all of a shorter window: requests, and those within the SLA."""

    start_s: int
    requests: int
    within: int


@dataclass(frozen=True)
class Attainment:
    """By second since the start of a window, both of shape (n,): requests, and those of them that
    were answered within the SLA's latency. Without the unsent, which no server could answer."""

    requests: Counts
    within: Counts

    @classmethod
    def of(cls, seen: Observation, tenant: int, sla: Sla, seconds: int) -> Attainment:
        """Of a tenant in a window with so many seconds of arrivals."""
        requests = seen.requests[tenant]
        due = requests.status != Status.UNSENT
        second = (requests.intended_ns - seen.start_ns) // 10**9
        within = due & (requests.latency_ms(seen.now_ns) <= sla.latency_ms)
        return cls(*(np.bincount(second[each], minlength=seconds) for each in (due, within)))

    def back(self, sla: Sla) -> NDArray[np.bool_]:
        """The seconds whose requests keep the SLA, or that have none."""
        return np.asarray(self.requests - self.within <= sla.allowed * self.requests)

    def worst_minute(self) -> Minute:
        """The lowest attainment of any minute with requests, the first if there are several."""
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
    """The share of requests that were late even if only the time since their actual send counts.

    Those that are still to be sent are not: that is the client's fault.
    """
    sent = requests.sent_ns > 0
    waited_ms = (requests.sent_ns - requests.intended_ns) / MS
    late = (requests.latency_ms(now_ns) - waited_ms)[sent] > sla.latency_ms
    due = int(np.sum(requests.status != Status.UNSENT))
    return int(late.sum()) / due if due else 0.0


class ReplayVerdict(StrEnum):
    """On one tenant in one window of a replay."""

    OK = "ok"
    SLA_MISSED = "sla_missed"
    CLIENT_LIMITED = "client_limited"
    DISTURBED = "disturbed"

    @property
    def outcome(self) -> Outcome:
        """Of its cell: that an SLA was missed is an answer, too."""
        return Outcome.OK if self is ReplayVerdict.SLA_MISSED else Outcome(self)


def verdict(seen: TenantWindow, sla: Sla, late_from_send: float) -> tuple[ReplayVerdict, str]:
    """The first rule that applies, and why: what happened, not what it bodes.

    Nothing that the client or the host may have done is laid at the server's door; what kept the
    SLA in spite of it would have kept it without.
    """
    missed = f"{1 - seen.exceedance:.1%} within {sla.latency_ms:g} ms"
    invalid = seen.verdict is Verdict.INVALID
    others, used = used_by_others(seen)
    sends = f"{1 - late_from_send:.1%} from their sends, which were late"
    rules = (
        (invalid and seen.disturbed, ReplayVerdict.DISTURBED, seen.reason),
        (invalid, ReplayVerdict.CLIENT_LIMITED, seen.reason),
        (seen.requests == 0, ReplayVerdict.OK, "no request came"),
        (seen.exceedance <= sla.allowed, ReplayVerdict.OK, ""),
        (late_from_send <= sla.allowed, ReplayVerdict.CLIENT_LIMITED, f"{missed}, but {sends}"),
        (others > QUIET.foreign, ReplayVerdict.DISTURBED, f"{missed}, while {used}"),
    )
    found = ((each, reason) for applies, each, reason in rules if applies)
    return next(found, (ReplayVerdict.SLA_MISSED, missed))
