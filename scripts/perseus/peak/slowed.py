"""Detect a temporary slowdown of a busy server from the gaps between its responses.

The counters of the kernel show the load of other processes on the server's cores. The counters show
the load of a hypervisor or of other virtual machines only if the hypervisor reports steal time.
This module needs no counter: if requests wait for the server, but the responses come more slowly
than in the saturation probes, the server is slower than usual (docs/explanation/load.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perseus.peak.speed import IN_FLIGHT, Speed
from perseus.peak.stats import Floats
from perseus.peak.system import Observation
from perseus.traffic.requests import Status

SHORTEST_S, REQUESTS = 0.2, 30
"""A slowdown counts only if it lasts at least SHORTEST_S seconds, and at least the time that the
server usually needs for REQUESTS consecutive requests."""

SURE = 5.0
"""A slowdown counts only if the speed is more than this number of standard errors below the usual
speed. The number is large, since a search tests hundreds of intervals, and service times are seldom
normally distributed."""

PAUSE = 0.25
"""Longest gap between two responses in a slowdown, as a share of the tested interval. The server
itself, not the host, probably causes a longer gap."""


@dataclass(frozen=True)
class UsualSpeed:
    """The usual speed of the busy server.

    For each tenant, `gaps_s` contains the usual time between responses while only this tenant has
    load, NaN for a tenant without load. `variances_s2` contains the variances of these times.
    `together` is the speed of the server while all tenants have load, as a share of its speed with
    one tenant alone.
    """

    gaps_s: tuple[float, ...]
    variances_s2: tuple[float, ...]
    together: float = 1.0

    @classmethod
    def of(cls, looks: Sequence[Sequence[Speed]], warm_up: Observation) -> UsualSpeed:
        """Compute the usual speed with one tenant and with all tenants.

        `looks` contains, for each saturation probe, the speed with each tenant alone. The usual
        speed with one tenant is the largest speed that a probe of this tenant measured. The usual
        speed with all tenants comes from the second half of the warm-up window `warm_up`, in which
        all tenants have load.
        """
        fastest = [max(each, key=_rate_rps) for each in zip(*looks, strict=True)]
        alone = cls(
            tuple(1 / each.rate_rps for each in fastest),
            tuple(float(np.var(each.gaps_s)) if len(each.gaps_s) else 0.0 for each in fastest),
        )
        half_s = warm_up.elapsed_s / 2
        together, _ = _Answers.of(warm_up, alone).pace(half_s, half_s)
        return cls(alone.gaps_s, alone.variances_s2, min(1.0, together))


def _rate_rps(look: Speed) -> float:
    return look.rate_rps if np.isfinite(look.rate_rps) else 0.0


def slowed(seen: Observation, usual: UsualSpeed) -> float:
    """Return the largest factor by which the server was temporarily slower than usual in a window;
    1 without a significant slowdown."""
    answers = _Answers.of(seen, usual)
    if not len(answers.gaps_s):
        return 1.0
    while_s = max(SHORTEST_S, REQUESTS * float(answers.gaps_s.mean()))
    found = 1.0
    while while_s < seen.elapsed_s:
        for begin_s in np.arange(0.0, seen.elapsed_s - while_s, while_s / 4):
            pace, error = answers.pace(begin_s, while_s)
            surely = 0 < pace < usual.together - SURE * error
            if surely and usual.together > found * pace and answers.keep_coming(begin_s, while_s):
                found = usual.together / pace
        while_s *= 2
    return found


@dataclass(frozen=True)
class _Answers:
    """The send times (`sent_s`) and the end times (`done_s`) of the requests of all tenants in a
    window, each in ascending order.

    Times are in seconds since the start of the window. `gaps_s` and `variances_s2` contain, for
    each ended request, the usual service time of its tenant and the variance of this time.
    """

    sent_s: Floats
    done_s: Floats
    gaps_s: Floats
    variances_s2: Floats

    @classmethod
    def of(cls, seen: Observation, usual: UsualSpeed) -> _Answers:
        sent, done = [], []
        for requests in seen.requests:
            was_sent = (requests.sent_ns > 0) & (requests.status != Status.UNSENT)
            has_ended = was_sent & (requests.done_ns > 0)
            sent.append((requests.sent_ns[was_sent] - seen.start_ns) / 1e9)
            done.append((requests.done_ns[has_ended] - seen.start_ns) / 1e9)
        counts, done_s = [len(each) for each in done], np.concatenate(done)
        order = np.argsort(done_s, kind="stable")
        return cls(
            np.sort(np.concatenate(sent)),
            done_s[order],
            np.repeat(usual.gaps_s, counts)[order],
            np.repeat(usual.variances_s2, counts)[order],
        )

    def pace(self, begin_s: float, while_s: float) -> tuple[float, float]:
        """Return the speed of the server in an interval as a share of its usual speed with one
        tenant, and the standard error of this share.

        The share is the sum of the usual service times of all requests that ended in the interval,
        divided by the length of the interval.
        """
        first, last = np.searchsorted(self.done_s, [begin_s, begin_s + while_s])
        gaps_s = self.gaps_s[first:last]
        # The first and the last service time may lie only partly in the interval.
        cut_off_s2 = gaps_s.max(initial=0.0) ** 2
        error_s = np.sqrt(self.variances_s2[first:last].sum() + cut_off_s2)
        return float(gaps_s.sum()) / while_s, float(error_s) / while_s

    def keep_coming(self, begin_s: float, while_s: float) -> bool:
        """Return whether at least IN_FLIGHT requests were in flight during the whole interval, and
        the server sent responses without a long pause (PAUSE)."""
        first, last = np.searchsorted(self.done_s, [begin_s, begin_s + while_s])
        times_s = np.array([begin_s, *self.done_s[first:last], begin_s + while_s])
        sent = np.searchsorted(self.sent_s, times_s[:-1], side="right")
        in_flight = sent - np.arange(first, last + 1)
        return bool(in_flight.min() >= IN_FLIGHT and np.diff(times_s).max() <= PAUSE * while_s)
