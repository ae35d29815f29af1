"""Infer the service time of each request from arrival and response times.

A busy first-come first-served server answers a request one service time after the previous
response, so service times are visible without a counter in the server. If the server works in
another way, the same times show it, and service times cannot be inferred.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perseus.peak.stats import Floats

# The numbers below come from simulated servers near their limit, eight runs of 3,000 requests each.

FEWEST = 200
"""Least number of requests that waited, and of requests that did not, for a comparison; the
quantile LOW then rests on 20 requests."""

LOW = 0.1
"""Quantile at which the times of requests with and without waiting are compared. Pauses and
network delays only add to times, so low quantiles are the least disturbed."""

EVEN = 0.1
"""Relative difference of mean service times between requests that waited long and the others,
above which the server is not a single first-come first-served server: it has several workers, or
forms batches. (By chance the difference is up to 5 % for a single server; it is 8 to 27 % for
two workers, 26 % or more for four, and over 100 % for batches.)"""

ERRORS = 3
"""Number of standard errors of that difference that chance may explain."""

OVERTAKING = 0.01
"""Largest share of requests that may be answered before an earlier request. The network may swap
neighbours now and then, while several workers reorder 1 to 40 % unless all service times are
equal."""

SPREAD = 1.5
"""Largest ratio of the spread of service times to that of latencies without load. For 40 such
latencies, exponential service times reach 1.3 by chance, and batches 2 or more."""

RARE = 0.01
"""Share of the largest service times that the spread leaves out: measurements without load
hardly ever contain the pauses of a server."""

LAGS, CORRELATED = 4, 0.15
"""Number of lags at which service times must be uncorrelated, and largest correlation. By chance
the correlation is up to 0.06 for variable service times; it is 0.2 for batches, and 0.4 to 0.8
for equal service times on two or four workers."""

LAG_ERRORS = 4
"""Number of standard errors of a correlation of independent service times that chance may
explain; several lags are tested."""


@dataclass(frozen=True)
class ObservedWork:
    """Service times of each window's requests, in their order, and the rest of the latency.

    `away_s` is the part of the latency without waiting and service: the way to the server and back.
    """

    windows_s: tuple[Floats, ...]
    away_s: float


def observed_work(
    arrivals_s: Sequence[Floats], done_s: Sequence[Floats], alone_s: Floats
) -> ObservedWork | None:
    """Return the service times of each window's requests; None if they cannot be inferred.

    `arrivals_s` and `done_s` are the times of the windows, one array of shape (n,) each. The server
    is empty at the start of a window; the last requests may have no response (NaN). `alone_s` holds
    latencies without load. The method inverts the recursion of Lindley (1952).
    """
    if not done_s or not all(map(_complete, done_s)) or not in_turn(done_s):
        return None
    found = _Read.of(arrivals_s, done_s, away_s=0.0)
    waited = found.waits_s > 0
    if min(np.count_nonzero(waited), np.count_nonzero(~waited)) < FEWEST:
        return None
    # The latency of requests that found the server idle exceeds the service time by this.
    idle_s, busy_s = (np.quantile(found.work_s[part], LOW) for part in (~waited, waited))
    away_s = max(0.0, float(idle_s - busy_s))
    found = _Read.of(arrivals_s, done_s, away_s)
    if not (_as_alone(found.work_s, alone_s) and _even(found) and _independent(found.works_s)):
        return None
    # Requests without a response come last, so they delay no request that counts.
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
    """Service times of the answered requests, one array per window, and all their waiting times."""

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
    """Return whether there are responses, and only the last requests have none."""
    answered = np.isfinite(done_s)
    return bool(answered.any()) and bool(answered[: np.flatnonzero(answered)[-1] + 1].all())


def in_turn(done_s: Sequence[Floats]) -> bool:
    """Return whether nearly all requests are answered in the order of their arrival in their
    window."""
    steps = np.concatenate([np.diff(done[np.isfinite(done)]) for done in done_s])
    return bool(np.count_nonzero(steps < 0) <= OVERTAKING * len(steps))


def _as_alone(work_s: Floats, alone_s: Floats) -> bool:
    """Return whether service times vary no more than latencies without load; otherwise requests
    share the server."""
    return _spread(work_s) <= SPREAD * _spread(alone_s) + EVEN * float(work_s.mean())


def _spread(values: Floats) -> float:
    """Mean absolute deviation, with the largest deviations trimmed."""
    away = np.abs(values - np.median(values))
    return float(np.mean(np.minimum(away, np.quantile(away, 1 - RARE))))


def _work_and_waits(arrival_s: Floats, done_s: Floats, away_s: float) -> tuple[Floats, Floats]:
    """Service times and waiting times of the answered requests; both of shape (answered,)."""
    done = np.sort(done_s[np.isfinite(done_s)]) - away_s
    arrival = arrival_s[: len(done)]
    free = np.append(-np.inf, done[:-1])
    begun = np.maximum(arrival, free)
    return np.maximum(done - begun, 0), begun - arrival


def _even(found: _Read) -> bool:
    """Whether service times do not depend on the waiting time."""
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
    """Return whether the service times of successive requests of a window are independent, or all
    equal."""
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
"""Number of neighbouring requests that are drawn as a block, since the speed of a host changes."""


def work_error(work_s: Floats, rate_rps: float, draws: int, rng: np.random.Generator) -> Floats:
    """Return the sampling error of a limit at `rate_rps` from few observed service times: factors,
    (draws,).

    Waiting times decay like exp(-theta t), with theta the root of rate (E exp(theta work) - 1) =
    theta (Asmussen, Applied Probability and Queues, 2nd ed., section XIII.5, for Poisson arrivals).
    At the limit, theta has the value that the SLA requires. The draws are a bootstrap of blocks of
    requests.
    """

    def surplus(theta: float) -> float:
        return rate_rps * float(np.mean(np.expm1(theta * work_s))) - theta

    if not 0 < rate_rps * work_s.mean() < 1:  # no service times, or no steady state
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
