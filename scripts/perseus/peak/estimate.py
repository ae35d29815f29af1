"""The limit of a load line, estimated from the windows near it (docs/method.md, "The estimate").

The luck of a window lies mostly in its arrivals, and these are known: they were drawn by us. So the
same arrivals are given to a virtual queue, a single first-come first-served server. Its late
requests are a control variate (Law, Simulation Modeling and Analysis, 5th ed., section 11.4): where
they are more than they would be in the long run, the real ones are likely to be, too.

Where the real server answers one request after the other, the work of each is known as well
(`observed_work`), and the virtual queue does what the real one did. Elsewhere work is drawn from
what requests take without load, and the queue's speed is fitted to the windows; how well that
explains the real server is estimated from the same windows, so that a server unlike the virtual one
gets a wider interval, not a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from perseus.peak.observed_work import in_turn, luck_of_work, observed_work
from perseus.peak.stats import (
    PRIOR_EPISODES,
    Exceedances,
    Floats,
    dispersion,
    percentile,
    similarity,
)
from perseus.peak.virtual_queue import Drawn, LongRun, VirtualQueue
from perseus.traffic.arrivals import Arrivals

RatesRps = Callable[[float], Sequence[float]]

LONG_RUN = 100_000
"""Requests of a run of the virtual queue that stands for its steady state."""

NEAR = 0.1
"""Loads that differ from the limit by this fraction count for less where the server joins requests:
it has the virtual queue's curve in the neighbourhood only, for its own is steeper. (With all
windows counted alike, the limit is 1.4 % too high, and 95 % intervals hold it in 87 % of searches.)
"""

SETTLES = 0.3
"""Share of late requests above which a queue does not get to its steady state within a window."""

WORK_DRAWS = 8
"""Times that the work of a window's requests is drawn; their arrivals are what they are."""

MORE_RUNS = 6
"""Further long runs at the limit of the virtual queue, to know it better than one run does."""

DISPERSIONS = 9
"""Quantiles of the uncertain dispersion over which the posterior is averaged."""


@dataclass(frozen=True)
class Trust:
    """How far the virtual queue is trusted to be like the real one, before it is tried.

    `unforeseen` is how many episodes it is assumed to have missed; `slope_spread` is the prior
    standard deviation of log(m), m the real curve's slope over the virtual one's.
    """

    unforeseen: float
    slope_spread: float


OBSERVED, DRAWN = Trust(1.0, 1.0), Trust(4.0, 1.0)
"""Trust in one whose work was read off the windows, and in one whose work is drawn."""

OUT_OF_TURN = Trust(20.0, 1.6)
"""Where answers overtake each other: several workers, or one that shares itself out. (Trusted as
DRAWN, 95 % intervals held the limit of M/M/4 in 92 % of searches.)"""


@dataclass(frozen=True)
class Evidence:
    """One window as it bears on the limit of one tenant.

    `arrivals_s` are the times of all tenants' requests since the start of the window, `done_s`
    those of this tenant's answers (NaN without one), `first` and `last` the range of its requests
    that count; `late` and `recovered` say of each of those whether it exceeded its SLA, and
    whether the queue had worked off its backlog. `confirms` says that the window lies below the
    limit on purpose, to certify a rate.
    """

    scale: float
    confirms: bool
    arrivals_s: tuple[Floats, ...]
    done_s: Floats
    first: int
    last: int
    late: NDArray[np.bool_]
    recovered: NDArray[np.bool_]
    exceedances: Exceedances


@dataclass(frozen=True)
class Limit:
    """The median of a limit's posterior and draws from it, as scales; shape (1 + draws,).

    `observed` tells that it rests on work that was read off the windows.
    """

    scales: Floats
    observed: bool

    @property
    def width(self) -> float:
        """Of the 95 % interval, as a share of the limit; there must be draws."""
        low, high = np.quantile(self.scales[1:], [0.025, 0.975])
        return float((high - low) / self.scales[0])


def limit(
    windows: Sequence[Evidence],
    tenant: int,
    rates_rps: RatesRps,
    queue: VirtualQueue,
    allowed: float,
    arrivals: Arrivals,
    rng: np.random.Generator,
    draws: int,
) -> Limit:
    """The scale at which `allowed` of a tenant's requests are late: the median, and draws."""
    found = _observed(queue, windows)
    others = [seen for seen in windows if not seen.confirms]
    if found is None and 0 < len(others) < len(windows):
        # Long windows, so far below the limit that its curve may not be the virtual queue's.
        windows = others
        found = _observed(queue, windows)
    scales = np.array([seen.scale for seen in windows])
    similar = np.array([similarity(scale, scales) for scale in scales])
    counts = [seen.exceedances for seen in windows]
    weights = 1 / np.array([dispersion(counts, near) for near in similar])
    queue, drawn = found or _drawn(queue, windows, weights, tenant)
    curve = _Curve.of(
        queue, tenant, rates_rps, allowed, arrivals, LONG_RUN if draws else LONG_RUN // 8
    )
    trust = _trust(queue, windows)
    late, remains = _controlled(windows, drawn, similar, tenant, queue, curve, trust)
    weights = np.minimum(1, weights / remains)
    requests = np.array([len(seen.late) for seen in windows])
    freedom = PRIOR_EPISODES + sum(
        seen.exceedances.late**2 / max(seen.exceedances.episode_squares, 1) for seen in windows
    )
    counts = np.stack([late, requests - late], axis=1)
    for _ in range(2):  # the second time knowing the scatter around the first, and what is near it
        posterior = _Posterior.of(np.log(scales), counts * weights[:, None], curve, freedom, trust)
        distances = (np.log(scales) - posterior.at(0.5)) / NEAR
        weights = weights / _scatter(posterior.fitted, late, requests, weights)
        if queue.batching and draws:
            weights = weights * np.exp(-0.5 * distances**2)
    limits = np.exp(posterior.at([0.5, *rng.random(draws)]))
    if queue.observed:
        (rate_rps,) = rates_rps(float(limits[0]))
        limits[1:] *= luck_of_work(queue.work_s[0], rate_rps, draws, rng)
    return Limit(limits, queue.observed)


def _trust(queue: VirtualQueue, windows: Sequence[Evidence]) -> Trust:
    if queue.observed:
        return OBSERVED
    return DRAWN if in_turn([seen.done_s for seen in windows]) else OUT_OF_TURN


def _observed(
    queue: VirtualQueue, windows: Sequence[Evidence]
) -> tuple[VirtualQueue, list[Drawn]] | None:
    """The queue and the work of each window's requests, read off the windows; None if it cannot."""
    if len(queue.work_s) > 1:
        return None
    arrivals_s = [seen.arrivals_s[0] for seen in windows]
    usual_s = percentile(queue.work_s[0], 50)
    work = observed_work(arrivals_s, [seen.done_s for seen in windows], queue.work_s[0])
    if work is None:
        return None
    pairs = zip(arrivals_s, work.windows_s, strict=True)
    drawn = [Drawn(arrival, work_s[None], (np.arange(len(work_s)),)) for arrival, work_s in pairs]
    (spare_s,) = queue.spare_s
    observed = replace(
        queue,
        work_s=(np.concatenate(work.windows_s),),
        spare_s=(spare_s + usual_s - work.away_s,),
        observed=True,
        run=work.run,
    )
    return observed, drawn


def _drawn(
    queue: VirtualQueue, windows: Sequence[Evidence], weights: Floats, tenant: int
) -> tuple[VirtualQueue, list[Drawn]]:
    """The queue, fitted to the windows, and the work of their requests, drawn."""
    drawn = [queue.draw(seen.arrivals_s, WORK_DRAWS) for seen in windows]
    return _fitted(queue, windows, drawn, weights, tenant), drawn


def _fitted(
    queue: VirtualQueue,
    windows: Sequence[Evidence],
    drawn: Sequence[Drawn],
    weights: Floats,
    tenant: int,
) -> VirtualQueue:
    """The queue, its work scaled so that it has as many late requests as the real server."""

    def surplus(queue: VirtualQueue) -> float:
        counts = [
            np.sum(spent_s > queue.spare_s[tenant]) / len(spent_s) - seen.late.sum()
            for seen, spent_s in _spent(queue, windows, drawn, tenant)
        ]
        return float(np.dot(weights, counts))

    if not any(seen.late.any() for seen in windows):
        return queue
    low, high = 0.1, 10.0
    for _ in range(14):
        middle = float(np.sqrt(low * high))
        if surplus(queue.slowed(middle)) > 0:
            high = middle
        else:
            low = middle
    return queue.slowed(float(np.sqrt(low * high)))


def _spent(
    queue: VirtualQueue, windows: Sequence[Evidence], drawn: Sequence[Drawn], tenant: int
) -> Iterator[tuple[Evidence, Floats]]:
    """Each window with what the tenant's requests that count spend, shape (draws, n)."""
    for seen, requests in zip(windows, drawn, strict=True):
        yield seen, queue.spent_s(requests, tenant)[:, seen.first : seen.last]


@dataclass(frozen=True)
class _Curve:
    """logit(long-run share of late requests) of the virtual queue over the logarithm of the scale.

    `log_limit` is where it reaches `level`, the logit of the allowed share.
    """

    log_scales: Floats
    logits: Floats
    log_limit: float
    level: float

    @classmethod
    def of(
        cls,
        queue: VirtualQueue,
        tenant: int,
        rates_rps: RatesRps,
        allowed: float,
        arrivals: Arrivals,
        requests: int,
    ) -> _Curve:
        level = float(np.log(allowed / (1 - allowed)))

        @lru_cache(maxsize=1)
        def long_run(shares: tuple[float, ...], requests: int, run: int) -> LongRun:
            return LongRun.of(queue, shares, arrivals, requests, run)

        def logit(scale: float, requests: int, run: int = 0) -> float:
            rates, share = rates_rps(scale), 1.0
            if queue.utilisation(rates) < 1:
                all_rps = sum(rates)
                # Rounded: along most lines all tenants keep their shares.
                shares = tuple(round(rate / all_rps, 9) for rate in rates)
                share = long_run(shares, requests, run).late_share(tenant, all_rps)
            return float(np.log((share + 1e-6) / (1 - share + 1e-6)))

        low, high = 1e-6, 1.0
        while logit(high, requests // 8) < level and high < 1e9:
            low, high = high, 2 * high
        for _ in range(30):
            middle = float(np.sqrt(low * high)) if low > 1e-6 else high / 2
            if logit(middle, requests // 8) > level:
                high = middle
            else:
                low = middle
            if high / low < 1.01:
                break
        log_scales = np.log(high) + np.linspace(-0.6, 0.3, 16)
        logits = np.maximum.accumulate([logit(float(np.exp(x)), requests) for x in log_scales])
        log_limit = float(np.interp(level, logits, log_scales))
        # All of it so far rests on the same random numbers.
        runs = [logit(float(np.exp(log_limit)), requests, run) for run in range(1, MORE_RUNS + 1)]
        slope = float(np.interp(log_limit, log_scales, np.gradient(logits, log_scales)))
        shift = float(np.mean([0, *(run - level for run in runs)])) / max(slope, 1.0)
        return cls(log_scales - shift, logits, log_limit - shift, level)

    def share(self, scale: float) -> float:
        return float(1 / (1 + np.exp(-np.interp(np.log(scale), self.log_scales, self.logits))))

    def above_level(self, log_scales: Floats) -> Floats:
        """logit - level at scales relative to the limit."""
        return np.interp(log_scales + self.log_limit, self.log_scales, self.logits) - self.level


def _controlled(
    windows: Sequence[Evidence],
    drawn: Sequence[Drawn],
    similar: Floats,
    tenant: int,
    queue: VirtualQueue,
    curve: _Curve,
    trust: Trust,
) -> tuple[Floats, Floats]:
    """Per window: late requests less the luck of the arrivals, and the share of variance left."""
    products, surplus, settles = [], [], []
    spare_s = queue.spare_s[tenant]
    for seen, spent_s in _spent(queue, windows, drawn, tenant):
        late, recovered = np.mean(spent_s > spare_s, axis=0), spent_s.mean(axis=0) <= spare_s / 2
        episode = np.cumsum(seen.recovered & recovered)
        y, x = np.bincount(episode, seen.late), np.bincount(episode, late)
        products.append((np.dot(y, y), np.dot(x, y), np.dot(x, x), np.count_nonzero(y)))
        surplus.append(late.sum() - len(late) * curve.share(seen.scale))
        settles.append(curve.share(seen.scale) <= SETTLES)
    # Windows at similar loads have similar episodes: (k, 4) sums over those.
    yy, xy, xx, episodes = (similar @ np.array(products, float)).T
    if queue.observed:  # the same requests are late in both queues, by the way work was read off
        slope = np.ones(len(windows))
    else:
        slope = np.clip(xy / np.maximum(xx, 1), 0, 1) * settles
    unforeseen = trust.unforeseen * (yy + 1) / (episodes + 1)
    remains = (yy - 2 * slope * xy + slope**2 * xx + unforeseen) / (yy + unforeseen)
    real = np.array([seen.late.sum() for seen in windows])
    return np.clip(real - slope * surplus, 0, [len(seen.late) for seen in windows]), remains


def _scatter(fitted: Floats, late: Floats, requests: Floats, weights: Floats) -> float:
    """How much more the windows scatter around the fit than their episodes explain; at least 1.

    Pearson's chi-squared over its degrees of freedom, as if two windows more had been as expected:
    a host whose speed changes from window to window, or a curve of another shape.
    """
    variance = np.maximum(requests * fitted * (1 - fitted), 1) / weights
    chi_squared = float(np.sum((late - requests * fitted) ** 2 / variance))
    return max(1.0, (chi_squared + 2) / max(len(late), 2))


@dataclass(frozen=True)
class _Posterior:
    """Possible limits with their density, and per window the share of late requests that fits best.

    logit p(s) = level + m (logit v(s / limit) - level), with v the curve of the virtual queue; a
    lognormal prior on m, a flat one on log(limit) as far as REACH beyond the loads offered. The
    density is averaged over how uncertain the dispersion is.
    """

    log_limits: Floats
    density: Floats
    fitted: Floats

    def at(self, shares: float | Sequence[float]) -> Floats:
        """Quantiles of the logarithm of the limit."""
        summed = np.cumsum(self.density) / self.density.sum()
        return np.asarray(np.interp(shares, summed, self.log_limits))

    @classmethod
    def of(
        cls, log_scales: Floats, counts: Floats, curve: _Curve, freedom: float, trust: Trust
    ) -> _Posterior:
        """`counts` are the late and the other requests of each window, shape (k, 2)."""
        log_limits = np.linspace(log_scales.min() - REACH, log_scales.max() + REACH, 1500)
        slopes = np.exp(np.linspace(-2.5, 2.5, 31) * trust.slope_spread)
        shape = curve.above_level(log_scales - log_limits[:, None])
        logit = curve.level + slopes[:, None, None] * shape
        # log p = logit - log(1 + exp(logit)), and log(1 - p) without the first term.
        likelihood = logit @ counts[:, 0] - np.logaddexp(0, logit) @ counts.sum(axis=1)
        prior = -0.5 * (np.log(slopes) / trust.slope_spread)[:, None] ** 2
        density = np.zeros(len(log_limits))
        levels = (np.arange(DISPERSIONS) + 0.5) / DISPERSIONS
        for factor in stats.chi2.ppf(levels, freedom) / freedom:
            log_density = factor * likelihood + prior
            posterior = np.exp(log_density - log_density.max()).sum(axis=0)
            density += posterior / posterior.sum()
        best = np.unravel_index(np.argmax(likelihood + prior), likelihood.shape)
        return cls(log_limits, density, 1 / (1 + np.exp(-logit[best])))


REACH = float(np.log(1.5))
"""How far beyond the loads that were offered a limit is looked for, as a logarithm."""
