"""Compute the share of requests within the SLA in a window of a replay: in each second, in the
worst minute, and in the whole window (docs/explanation/replay.md).

A request belongs to the second of its intended send time, even if the client sends it later.
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
    """One minute of a window: its number of requests, and how many of them are within the SLA.

    The minute begins `start_s` seconds after the start of the window. If the window is shorter than
    a minute, both numbers count the requests of the whole window.
    """

    start_s: int
    requests: int
    within: int


@dataclass(frozen=True)
class Attainment:
    """A tenant's number of requests, in total and within the SLA, in each second of a window.

    `requests` and `within` have shape (n,), with one entry for each second since the start of the
    window. Neither array counts requests that the client dropped.
    """

    requests: Counts
    within: Counts

    @classmethod
    def of(cls, seen: Observation, tenant: int, sla: Sla, seconds: int) -> Attainment:
        """Count a tenant's requests in each second of a window. All intended send times must lie in
        the first `seconds` seconds."""
        requests = seen.requests[tenant]
        due = requests.status != Status.UNSENT
        second = (requests.intended_ns - seen.start_ns) // 10**9
        within = due & (requests.latency_ms(seen.now_ns) <= sla.latency_ms)
        return cls(*(np.bincount(second[each], minlength=seconds) for each in (due, within)))

    def back(self, sla: Sla) -> NDArray[np.bool_]:
        """Return, for each second, whether the requests of this second keep the SLA. A second
        without requests keeps the SLA."""
        late = (self.requests - self.within) / np.maximum(self.requests, 1)
        return np.asarray(late <= sla.allowed)

    def worst_minute(self) -> Minute:
        """Return the minute with the lowest share of requests within the SLA. If several minutes
        have this share, return the first of them. A minute may begin at any second."""
        length = min(MINUTE, len(self.requests))
        requests, within = (
            np.convolve(each, np.ones(length, np.int64), "valid")
            for each in (self.requests, self.within)
        )
        shares = np.where(requests > 0, within / np.maximum(requests, 1), np.inf)
        start = int(np.argmin(shares))
        return Minute(start, int(requests[start]), int(within[start]))


def attained(requests: Requests, sla: Sla, now_ns: int) -> stats.Interval:
    """Return the share of requests within the SLA, with its 95 % interval from
    `stats.exceedance`."""
    latency_ms = requests.latency_ms(now_ns)[requests.status != Status.UNSENT]
    dispersion = stats.dispersion([stats.exceedances(latency_ms, sla.latency_ms)], [1.0])
    late = stats.exceedance(latency_ms, sla.latency_ms, 0.95, dispersion)
    return stats.Interval(1 - late.value, 1 - late.high, 1 - late.low)


def late_from_send(requests: Requests, sla: Sla, now_ns: int) -> float:
    """Return the share of requests that would be late if latency counted from the actual send time.

    If this share keeps the SLA, late sends of the client caused the late requests. A request that
    the client has not sent yet does not count as late.
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
        """Return the outcome of a cell whose tenant has this verdict. The outcome for SLA_MISSED is
        OK, because a missed SLA is a valid result about the server."""
        return Outcome.OK if self is ReplayVerdict.SLA_MISSED else Outcome(self)


def verdict(seen: TenantWindow, sla: Sla, late_from_send: float) -> tuple[ReplayVerdict, str]:
    """Return the verdict on a tenant in a window of a replay, and the reason for the verdict.

    `late_from_send` is the share of late requests if latency counts from the actual send time. If
    late sends or other processes may have caused the late requests, the verdict is never
    SLA_MISSED. A valid window that keeps the SLA is OK even on a busy host, because the server
    would also keep the SLA on an idle host.
    """
    missed = f"{1 - seen.exceedance:.1%} of the requests took at most {sla.latency_ms:g} ms"
    invalid = seen.verdict is Verdict.INVALID
    others, used = other_load(seen)
    sends = f"this share is {1 - late_from_send:.1%} if latency counts from the actual send time"
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
