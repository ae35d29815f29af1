"""Estimate the limit of one tenant from the windows near the limit (docs/explanation/estimate.md).

By chance, the arrivals of a window may cause more or fewer late requests than usual. Therefore the
module simulates a virtual queue (a first-come first-served server) with the arrival times of each
window. If the virtual queue has a larger share of late requests in a window than in a long
simulation, the arrivals of this window are unfavourable, probably also for the real server. The
module corrects the number of late requests of the real server accordingly (a control variate: Law,
Simulation Modeling and Analysis, 5th ed., section 11.4). If late requests of the virtual queue and
of the real server have little in common, the correction is small, and the interval of the limit is
wider, but still valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perseus.peak.evidence import Evidence
from perseus.peak.exceedance_curve import ExceedanceCurve
from perseus.peak.line_model import LineModel
from perseus.peak.observed_work import work_error
from perseus.peak.posterior import BEYOND, LateCounts, Posterior
from perseus.peak.queue_replay import QueueReplay
from perseus.peak.stats import PRIOR_EPISODES, Floats

LONG_RUN = 100_000
"""Number of requests in a long simulation of the virtual queue. The long simulation shows the
steady state."""

SETTLES = 0.3
"""If the share of late requests in a long simulation exceeds this value, a window is too short for
the steady state of the queue. Then the module does not correct the window for its arrivals, unless
the service times are observed."""


@dataclass(frozen=True)
class Draws:
    """The source of posterior draws: a draw is the quantile of a posterior at a cumulative
    probability from `levels`, in (0, 1).

    All tenants of a load line use the same `levels`, because the errors of their limits have common
    causes. If the draws of the tenants were independent, the lowest of their limits would be too
    low.
    """

    levels: Floats
    rng: np.random.Generator

    @classmethod
    def of(cls, count: int, rng: np.random.Generator) -> Draws:
        return cls((rng.permutation(count) + 0.5) / max(count, 1), rng)

    @property
    def count(self) -> int:
        return len(self.levels)


@dataclass(frozen=True)
class Limit:
    """The limit of a tenant or of a load line, as a load factor.

    `scales`, shape (1 + draws,), contains the posterior median of the limit, followed by posterior
    draws of the limit. `observed` says whether the estimate uses service times that Perseus
    inferred from the windows (`observed_work`).
    """

    scales: Floats
    observed: bool

    @property
    def width(self) -> float:
        """Return the width of the 95 % interval divided by the median; infinite without draws."""
        if len(self.scales) == 1:
            return np.inf
        low, high = self._interval
        return float((high - low) / self.scales[0])

    def agrees_with(self, scale: float, widest: float) -> bool:
        """Return whether the 95 % interval contains the load factor `scale`, and is narrow: its
        width divided by the median is at most `widest`."""
        if self.width > widest:
            return False
        low, high = self._interval
        return bool(low <= scale <= high)

    @property
    def _interval(self) -> tuple[float, float]:
        low, high = np.quantile(self.scales[1:], [0.025, 0.975])
        return float(low), float(high)


def tenant_limit(model: LineModel, tenant: int, windows: Sequence[Evidence], draws: Draws) -> Limit:
    """Return the limit of a tenant: the load factor at which its share of late requests reaches the
    share that the SLA allows.

    `windows` contains the data of the windows near the limit. If `draws` is empty, the function
    computes only the median, from shorter simulations.
    """
    replay = QueueReplay.of(model, tenant, windows)
    requests = LONG_RUN if draws.count else LONG_RUN // 8
    curve = ExceedanceCurve.of(replay.model, tenant, requests)
    counts = _without_sampling_error(replay, curve)
    spread = replay.trust.slope_spread
    near = Posterior.of(counts, curve, spread)
    # Only the interval uses the wider range of possible limits. The estimate stays near the offered
    # loads.
    drawn = Posterior.of(counts, curve, spread, BEYOND) if draws.count and near.is_open else near
    limits = np.exp([*near.at([0.5]), *drawn.at(draws.levels.tolist())])
    if replay.queue.observed:
        (rate_rps,) = model.line.rates_rps(float(limits[0]))
        limits[1:] *= work_error(replay.queue.work_s[0], rate_rps, draws.count, draws.rng)
    return Limit(limits, replay.queue.observed)


def _without_sampling_error(replay: QueueReplay, curve: ExceedanceCurve) -> LateCounts:
    """Return the number of late requests in each window, corrected for the random arrivals of the
    window.

    A window has a large weight if the virtual queue reproduces the late requests of the real server
    well: the late requests in this window, and in windows at similar loads.
    """
    windows = replay.windows
    products, surplus, settles = [], [], []
    for seen, spent_s in replay.spent():
        late = np.mean(spent_s > replay.spare_s, axis=0)
        recovered = spent_s.mean(axis=0) <= replay.spare_s / 2
        episode = np.cumsum(seen.recovered & recovered)
        y, x = np.bincount(episode, seen.late), np.bincount(episode, late)
        products.append((np.dot(y, y), np.dot(x, y), np.dot(x, x), np.count_nonzero(y)))
        surplus.append(late.sum() - len(late) * curve.share(seen.scale))
        settles.append(curve.share(seen.scale) <= SETTLES)
    # Windows at similar loads have clusters of late requests of similar sizes, so the sums for each
    # window run over all windows, weighted by the similarity of their loads.
    yy, xy, xx, episodes = (replay.similar @ np.array(products, float)).T
    if replay.queue.observed:  # the same requests are late in the real and the virtual queue
        slope = np.ones(len(windows))
    else:
        slope = np.clip(xy / np.maximum(xx, 1), 0, 1) * settles
    unforeseen = replay.trust.unforeseen * (yy + 1) / (episodes + 1)
    remains = (yy - 2 * slope * xy + slope**2 * xx + unforeseen) / (yy + unforeseen)
    requests = np.array([len(seen.late) for seen in windows])
    real = np.array([seen.late.sum() for seen in windows])
    return LateCounts(
        log_scales=np.log([seen.scale for seen in windows]),
        late=np.clip(real - slope * surplus, 0, requests),
        requests=requests,
        weights=np.minimum(1, replay.worth / remains),
        freedom=_freedom(windows),
    )


def _freedom(windows: Sequence[Evidence]) -> float:
    """Return the degrees of freedom of the estimated dispersion: PRIOR_EPISODES plus the effective
    number of clusters of late requests in all windows together."""
    return PRIOR_EPISODES + sum(
        seen.exceedances.late**2 / max(seen.exceedances.episode_squares, 1) for seen in windows
    )
