"""Infer the service time of each request from the times of all arrivals and responses.

If a server works on one request at a time, in the order of arrival, and requests wait, the gap
between two responses is the service time of the second request. The module also tests whether the
server really works in this way. If the server has several workers or forms batches, Perseus cannot
infer its service times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perseus.peak.stats import Floats

# All thresholds below come from eight simulations of 3,000 requests each, of servers near their
# limit.

FEWEST = 200
"""The module compares the service times of two groups: requests that waited, and requests that did
not wait. Each group must contain at least this number of requests. With 200 requests, 20 lie below
the quantile LOW."""

LOW = 0.1
"""To find the network time, the module compares this quantile of the service times of both groups.
Pauses and network delays only lengthen times, so they disturb low quantiles least."""

EVEN = 0.1
"""Largest relative difference between the mean service times of two groups: requests that waited
long and all other requests. If the difference is larger, the server has several workers or forms
batches. In simulations, the means differ by up to 5 % for one worker, by 8 to 27 % for two workers,
by 26 % or more for four workers, and by over 100 % for batches."""

ERRORS = 3
"""A difference between mean service times may be due to chance if it is at most this number of
standard errors."""

OVERTAKING = 0.01
"""Largest share of requests whose response may arrive before the response to an earlier request.
The network may swap two neighbouring requests now and then. Several workers reorder 1 to 40 % of
the requests, unless all service times are equal."""

SPREAD = 1.5
"""Largest spread (`_spread`) of service times, as a multiple of the spread of latencies without
load. For one worker with exponential service times, and 40 known latencies without load, this
multiple reaches 1.3 by chance. For a server that forms batches, it is 2 or more."""

RARE = 0.01
"""`_spread` clips the largest deviations from the median: this share of all deviations. Pauses of
the server cause such deviations, and measurements without load hardly ever contain a pause."""

LAGS, CORRELATED = 4, 0.15
"""Service times up to LAGS requests apart may have a correlation of at most CORRELATED. In
simulations of one worker with variable service times, this correlation reaches 0.06 by chance. In
simulations of other servers, it is 0.2 with batches, and 0.4 to 0.8 with equal service times on two
or four workers."""

LAG_ERRORS = 4
"""A correlation may be due to chance if it is at most this number of standard errors. The number is
larger than ERRORS, because the module tests the correlations at several lags."""


@dataclass(frozen=True)
class ObservedWork:
    """The inferred service times and the network time, in seconds.

    `windows_s` contains one array of service times per window, in the order of the requests. The
    network time `away_s` is the latency of a request minus its waiting time and its service time.
    """

    windows_s: tuple[Floats, ...]
    away_s: float


def observed_work(
    arrivals_s: Sequence[Floats], done_s: Sequence[Floats], alone_s: Floats
) -> ObservedWork | None:
    """Return the service times of each window's requests; None if Perseus cannot infer the service
    times.

    `arrivals_s` contains the arrival times of the requests, and `done_s` the times of their
    responses: one array of shape (n,) per window. Each window must begin with an idle server. Only
    the last requests of a window may lack a response (NaN). `alone_s` contains latencies without
    load.
    """
    if not done_s or not all(map(_complete, done_s)) or not in_turn(done_s):
        return None
    found = _Read.of(arrivals_s, done_s, away_s=0.0)
    waited = found.waits_s > 0
    if min(np.count_nonzero(waited), np.count_nonzero(~waited)) < FEWEST:
        return None
    # If the server is idle, the latency is the service time plus the network time `away_s`.
    idle_s, busy_s = (np.quantile(found.work_s[part], LOW) for part in (~waited, waited))
    away_s = max(0.0, float(idle_s - busy_s))
    found = _Read.of(arrivals_s, done_s, away_s)
    if not (_as_alone(found.work_s, alone_s) and _even(found) and _independent(found.works_s)):
        return None
    # Requests without a response come last, so their service times delay no counted request.
    usual = float(np.median(found.work_s))
    return ObservedWork(
        tuple(
            np.append(work_s, np.full(len(arrival) - len(work_s), usual))
            for work_s, arrival in zip(found.works_s, arrivals_s, strict=True)
        ),
        away_s,
    )


@dataclass(frozen=True)
class _Read:
    """The service times of the answered requests, one array per window, and the waiting times of
    all windows in one array."""

    works_s: tuple[Floats, ...]
    waits_s: Floats

    @classmethod
    def of(cls, arrivals_s: Sequence[Floats], done_s: Sequence[Floats], away_s: float) -> _Read:
        windows = zip(arrivals_s, done_s, strict=True)
        works_s, waits_s = zip(*(_work_and_waits(*each, away_s) for each in windows), strict=True)
        return cls(works_s, np.concatenate(waits_s))

    @property
    def work_s(self) -> Floats:
        return np.concatenate(self.works_s)


def _complete(done_s: Floats) -> bool:
    """Return whether the window has responses, and no request without a response comes before a
    request with a response."""
    answered = np.isfinite(done_s)
    return bool(answered.any()) and bool(answered[: np.flatnonzero(answered)[-1] + 1].all())


def in_turn(done_s: Sequence[Floats]) -> bool:
    """Return whether the server answered nearly all requests of each window in the order of
    arrival."""
    steps = np.concatenate([np.diff(done[np.isfinite(done)]) for done in done_s])
    return bool(np.count_nonzero(steps < 0) <= OVERTAKING * len(steps))


def _as_alone(work_s: Floats, alone_s: Floats) -> bool:
    """Return whether service times under load vary hardly more than latencies without load. If the
    service times vary more, the server serves several requests at the same time."""
    return _spread(work_s) <= SPREAD * _spread(alone_s) + EVEN * float(work_s.mean())


def _spread(values: Floats) -> float:
    """Return the mean absolute deviation from the median, with the largest deviations clipped."""
    away = np.abs(values - np.median(values))
    return float(np.mean(np.minimum(away, np.quantile(away, 1 - RARE))))


def _work_and_waits(arrival_s: Floats, done_s: Floats, away_s: float) -> tuple[Floats, Floats]:
    """Return the service times and the waiting times of the answered requests; shape (answered,)
    each."""
    done = np.sort(done_s[np.isfinite(done_s)]) - away_s
    arrival = arrival_s[: len(done)]
    free = np.append(-np.inf, done[:-1])
    begun = np.maximum(arrival, free)
    return np.maximum(done - begun, 0), begun - arrival


def _even(found: _Read) -> bool:
    """Return whether requests with long waiting times have nearly the same mean service time as all
    other requests."""
    work_s, waits_s = found.work_s, found.waits_s
    long = waits_s > np.median(waits_s[waits_s > 0]) if np.any(waits_s > 0) else waits_s > 0
    if min(np.count_nonzero(long), np.count_nonzero(~long)) < FEWEST / 2:
        return False
    of_long, of_others = work_s[long], work_s[~long]
    error = np.hypot(
        of_long.std() / np.sqrt(len(of_long)), of_others.std() / np.sqrt(len(of_others))
    )
    difference = abs(float(of_long.mean() - of_others.mean()))
    return bool(difference <= max(EVEN * float(work_s.mean()), ERRORS * float(error)))


def _independent(works_s: Sequence[Floats]) -> bool:
    """Return whether each service time is uncorrelated with the LAGS service times before it.
    Nearly equal service times count as uncorrelated."""
    mean_s = float(np.concatenate(works_s).mean())
    centred = [work - mean_s for work in works_s]
    variance = float(np.mean(np.concatenate(centred) ** 2))
    if variance <= (EVEN * mean_s) ** 2:
        return True
    for lag in range(1, LAGS + 1):
        products = np.concatenate([part[lag:] * part[:-lag] for part in centred])
        allowed = max(CORRELATED, LAG_ERRORS / np.sqrt(len(products)))
        if abs(float(products.mean())) > allowed * variance:
            return False
    return True


BLOCKS = 40
"""Number of blocks of neighbouring requests in the bootstrap. The bootstrap keeps neighbouring
requests together, since the speed of a host changes over time."""


def work_error(work_s: Floats, rate_rps: float, draws: int, rng: np.random.Generator) -> Floats:
    """Return random factors, shape (draws,), for the sampling error of a limit that was computed
    from few service times. The caller multiplies draws of the limit by these factors.

    `rate_rps` is the computed limit in requests/s, and `work_s` contains the observed service times
    S. The tail of the waiting time decays like exp(-theta t), where theta solves rate (E[exp(theta
    S)] - 1) = theta (Asmussen, Applied Probability and Queues, 2nd ed., section XIII.5, for Poisson
    arrivals). The function computes the decay rate theta from `work_s` and `rate_rps`. For each
    factor, a block bootstrap draws new service times from `work_s`. The function computes the rate
    at which the tail has the same decay rate theta with the new service times. The factor is the
    new rate divided by `rate_rps`.
    """

    def surplus(theta: float) -> float:
        return rate_rps * float(np.mean(np.expm1(theta * work_s))) - theta

    if not 0 < rate_rps * work_s.mean() < 1:  # no service times, or a utilisation of 1 or more
        return np.ones(draws)
    low, high = 0.0, 1 / float(work_s.max())
    while surplus(high) < 0:
        low, high = high, 2 * high
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if surplus(middle) > 0 else (middle, high)
    blocks = np.array_split(np.expm1(high * work_s), BLOCKS)
    sums, counts = np.array([[block.sum(), len(block)] for block in blocks]).T
    chosen = rng.integers(0, BLOCKS, (draws, BLOCKS))
    return np.mean(np.expm1(high * work_s)) / (sums[chosen].sum(1) / counts[chosen].sum(1))
