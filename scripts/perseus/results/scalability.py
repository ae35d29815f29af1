"""Fit the throughput of closed loops as a function of the concurrency, and find the knee
(docs/explanation/closed-loops.md).

The module fits two laws (formulas for the throughput): a queueing network and the universal
scalability law. Each law has two asymptotes; the second law has them only if its parameter kappa is
0. One asymptote is a straight line: each request in flight adds the throughput of a single request.
The other asymptote is the saturation throughput. The knee is the concurrency at which the
asymptotes intersect: N* = R/D of operational analysis (Denning and Buzen, ACM Computing Surveys
10(3), 1978). R is the response time of a single request, and D is the service time of the request
at the bottleneck.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from perseus.peak.stats import CONFIDENCE, Floats, Interval

FEWEST_LEVELS, FEWEST_UNIVERSAL = 3, 6
"""FEWEST_LEVELS is the least number of measured concurrencies for a fit of the queueing network,
which has two parameters. FEWEST_UNIVERSAL is the least number of measured concurrencies for a
choice between the queueing network and the universal scalability law."""

BEYOND = 8.0
"""Largest knee that the fit tries, as a multiple of the highest measured concurrency."""

KNEES, KAPPAS, ZOOMS = 100, 50, 4
"""The fit has ZOOMS passes. Each pass tries all combinations of KNEES values of the knee and KAPPAS
values of kappa, in a narrower range than the previous pass."""


def queueing(in_flight: Sequence[int], knee: Floats, kappa: Floats) -> Floats:
    """Return the throughput of a closed queueing network, relative to the throughput with one
    request in flight.

    The result has shape (values in `knee`, values in `in_flight`). Only the other law uses `kappa`.

    The network has one queueing station with the service time D, and a delay of R - D (the
    machine-repairman model). At concurrency N, the throughput is X(N) = (1 - B(N, R/D - 1)) / D,
    with Erlang's loss formula B. Exact mean-value analysis gives the same throughput (Lazowska et
    al., Quantitative System Performance, 1984, chapter 6).
    """
    load, lost, found = knee - 1, np.ones_like(knee), []
    for n in range(1, max(in_flight) + 1):
        lost = load * lost / (n + load * lost)
        if n in in_flight:
            found.append(knee * (1 - lost))
    return np.column_stack(found)


def universal(in_flight: Sequence[int], knee: Floats, kappa: Floats) -> Floats:
    """Return the throughput by the Universal Scalability Law (Gunther, Guerrilla Capacity Planning,
    2007), relative to the throughput with one request in flight.

    The law is X(N) / X(1) = N / (1 + sigma (N - 1) + kappa N (N - 1)), where X(N) is the throughput
    at concurrency N. The contention sigma is 1 / knee, because the straight line X(N) / X(1) = N
    meets Amdahl's asymptote 1 / sigma at the knee. With a coherency kappa above 0, the throughput
    falls at high concurrency.
    """
    n, sigma = np.asarray(in_flight, float), 1 / knee[:, None]
    return np.asarray(n / (1 + sigma * (n - 1) + kappa[:, None] * n * (n - 1)))


Shape = Callable[[Sequence[int], Floats, Floats], Floats]
QUEUEING, UNIVERSAL = "queueing network", "universal scalability law"
LAWS: Final[dict[str, Shape]] = {QUEUEING: queueing, UNIVERSAL: universal}


@dataclass(frozen=True)
class Fit:
    """A law fitted to the throughputs at `levels` concurrencies, with 95 % intervals.

    `single_rps` is the throughput with one request in flight: 1/R, where R is the response time of
    a single request. `saturated_rps` is the saturation throughput: 1/D, where D is the service time
    at the bottleneck.

    `kappa` is a parameter of the universal scalability law, and 0 in a queueing network. If `kappa`
    is above 0, the throughput falls beyond the concurrency `highest`, and never reaches
    `saturated_rps`. If `kappa` is 0, `highest` is infinite.

    `error` is the root mean square of the relative deviations of the measured throughputs from the
    law. The interval of a parameter ends at infinity if the measurements set no upper bound.
    """

    law: str
    levels: int
    single_rps: Interval
    saturated_rps: Interval
    knee: Interval
    kappa: Interval
    highest: Interval
    error: float

    @property
    def has_kappa(self) -> bool:
        return self.law == UNIVERSAL

    @property
    def knee_rps(self) -> float:
        """Fitted throughput at the concurrency that is closest to the knee; NaN if the knee is
        infinite."""
        if np.isinf(self.knee.value):
            return np.nan
        knee, kappa = self.knee.value, self.kappa.value
        return float(throughput_rps(self.law, [round(knee)], self.single_rps.value, knee, kappa)[0])


def throughput_rps(
    law: str, in_flight: Sequence[int], single_rps: float, knee: float, kappa: float
) -> Floats:
    """Return the throughput in requests/s that a law predicts at each concurrency in `in_flight`.
    The concurrencies are in ascending order."""
    (relative,) = LAWS[law](in_flight, np.array([knee]), np.array([kappa]))
    return np.asarray(single_rps * relative)


def fitted(in_flight: Sequence[int], rates_rps: Sequence[float]) -> Fit | None:
    """Return the law that fits the measured throughputs best; None if there are too few
    concurrencies.

    The concurrencies are in ascending order. The function chooses the law by Akaike's criterion,
    corrected for few values (Burnham and Anderson, Model Selection, 2nd ed., section 2.4). The
    criterion counts the variance of the errors as one more parameter of each law. With fewer than
    FEWEST_UNIVERSAL concurrencies, the criterion cannot judge the universal law, and the function
    returns the queueing network.
    """
    if len(in_flight) < FEWEST_LEVELS:
        return None
    logs = np.log(rates_rps)
    queue = _fit(QUEUEING, 2, in_flight, logs)
    if len(in_flight) < FEWEST_UNIVERSAL:
        return queue
    law = _fit(UNIVERSAL, 3, in_flight, logs)
    return law if _criterion(law, 3 + 1) < _criterion(queue, 2 + 1) else queue


def _criterion(fit: Fit, parameters: int) -> float:
    n, rounding = fit.levels, 1e-9
    penalty = 2 * parameters * n / (n - parameters - 1)
    return float(2 * n * np.log(max(fit.error, rounding)) + penalty)


def _fit(law: str, parameters: int, in_flight: Sequence[int], logs: Floats) -> Fit:
    """Fit a law to the logarithms `logs` of the throughputs by least squares, and compute profile
    intervals of its parameters.

    The function tries all pairs of values on a grid of knees and kappas, and fits the throughput
    with one request in flight for each pair. If the interval of the knee reaches the end of the
    grid, the interval has no upper bound. `parameters` is the number of parameters of the law.
    """
    highest = max(in_flight)
    knees, kappas = np.geomspace(1, BEYOND * highest, KNEES), np.zeros(1)
    if parameters > 2:
        kappas = np.append(0.0, np.geomspace(1e-3 / highest**2, 1, KAPPAS))
    for _ in range(ZOOMS):
        region = _region(law, parameters, in_flight, logs, (knees, kappas))
        knees, kappas = _around(knees, region.knee), _around(kappas, region.kappa)
    return region.fit(law, BEYOND * highest)


@dataclass(frozen=True)
class _Region:
    """Confidence region of a fit: the grid points (pairs of a knee and a kappa) that do not fit the
    measurements significantly worse than the best grid point.

    An F test of the sums of squared errors decides which points are significantly worse (Bates and
    Watts, Nonlinear Regression Analysis, 1988, section 6.1). The arrays `knee`, `kappa`, `single`
    and `off` have one value per grid point, shape (points,). `single` is the logarithm of the
    throughput with one request in flight that fits best at the grid point. A value that differs
    from `single` by at most `off` is still in the confidence region. `best` is the index of the
    best grid point, and `error` is the root mean square error at this point.
    """

    knee: Floats
    kappa: Floats
    single: Floats
    off: Floats
    best: int
    levels: int
    error: float

    def fit(self, law: str, farthest: float) -> Fit:
        knee = np.where(
            self.knee < farthest, self.knee, np.inf
        )  # a knee at the end of the grid has no upper bound
        falls, single_rps = self.kappa > 0, np.exp(self.single)
        highest = np.sqrt((1 - 1 / self.knee) / np.where(falls, self.kappa, 1))
        return Fit(
            law=law,
            levels=self.levels,
            single_rps=self.interval(single_rps, self.off),
            saturated_rps=self.interval(single_rps * knee, self.off),
            knee=self.interval(knee),
            kappa=self.interval(self.kappa),
            highest=self.interval(np.where(falls, highest, np.inf)),
            error=self.error,
        )

    def interval(self, values: Floats, off: Floats | float = 0.0) -> Interval:
        """Return the interval of a quantity, given its values at the grid points of the confidence
        region. `off` is the uncertainty of the logarithm of each value."""
        low, high = (values * np.exp(-off)).min(), (values * np.exp(off)).max()
        return Interval(float(values[self.best]), float(low), float(high))


def _region(
    law: str, parameters: int, in_flight: Sequence[int], logs: Floats, axes: tuple[Floats, Floats]
) -> _Region:
    knee, kappa = (each.ravel() for each in np.meshgrid(*axes))
    off = logs - np.log(LAWS[law](in_flight, knee, kappa))
    single, n = off.mean(axis=1), len(logs)
    squares = ((off - single[:, None]) ** 2).sum(axis=1)
    freedom = n - parameters
    most = squares.min() * (1 + special.fdtri(1, freedom, CONFIDENCE) / freedom)
    inside = squares <= most
    return _Region(
        knee=knee[inside],
        kappa=kappa[inside],
        single=single[inside],
        off=np.sqrt((most - squares[inside]) / n),
        best=int(squares[inside].argmin()),
        levels=n,
        error=float(np.sqrt(squares.min() / n)),
    )


def _around(axis: Floats, inside: Floats) -> Floats:
    """Return the values of a parameter that the next pass of the fit tries.

    `axis` has the values that the present pass tried. `inside` has the values at the grid points in
    the confidence region. The result has as many values as `axis`, but only in the range of
    `inside`. If `axis` contains 0, the result also contains 0.
    """
    above, found = axis[axis > 0], inside[inside > 0]
    if not len(found):
        return axis
    first, last = np.searchsorted(above, [found.min(), found.max()])
    low, high = above[max(first - 1, 0)], above[min(last + 1, len(above) - 1)]
    finer = np.geomspace(low, high, len(above))
    finer[-1] = high  # exact, since `fit` compares values with the end of the grid
    return np.append(axis[axis == 0], finer)
