"""Simulate the windows of a search in a virtual queue, with the real arrival times.

If the search has only one tenant, and the server works on one request at a time, the service time
of each request is known (`observed_work`). Then the virtual queue reproduces the real queue.
Otherwise, the virtual queue draws service times from the latencies without load, and multiplies
them by a common factor. With this factor, the virtual queue has as many late requests as the real
server.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perseus.peak.evidence import Evidence
from perseus.peak.line_model import LineModel
from perseus.peak.observed_work import in_turn, observed_work
from perseus.peak.stats import Floats, dispersion, percentile, similarity
from perseus.peak.virtual_queue import Drawn, VirtualQueue

WORK_DRAWS = 8
"""Number of simulations of each window if the service times are unknown. The simulations differ in
their random service times, and have the same arrival times."""

SIMILAR = 0.08
"""Relative difference of two loads up to which an estimate assumes that late requests form clusters
of similar sizes at both loads. Verdicts use a smaller value (`window_runner.SIMILAR`). An estimate
needs the clusters from more windows, because most windows near the limit contain few clusters."""


@dataclass(frozen=True)
class Trust:
    """Prior assumptions about how far the virtual queue differs from the real server.

    `unforeseen` is the expected number of clusters of late requests that occur only on the real
    server. The exceedance (share of late requests) rises with the load. Let m be the slope of this
    rise on the real server divided by the slope in the virtual queue. `slope_spread` is the prior
    standard deviation of log(m).
    """

    unforeseen: float
    slope_spread: float


SEEN, IN_TURN, OUT_OF_TURN = Trust(1.0, 0.3), Trust(1.0, 1.0), Trust(20.0, 1.6)
"""Prior assumptions for three cases. SEEN: the service times are observed, so the virtual queue
reproduces the real queue. IN_TURN: the service times are unknown, and the server answers requests
in the order of arrival. OUT_OF_TURN: the service times are unknown, and responses overtake each
other, for example because the server has several workers."""


@dataclass(frozen=True)
class QueueReplay:
    """The windows near the limit of a tenant (`windows`), and the service times that their requests
    have in the virtual queue (`drawn`)."""

    model: LineModel
    tenant: int
    windows: Sequence[Evidence]
    drawn: Sequence[Drawn]

    @classmethod
    def of(cls, model: LineModel, tenant: int, windows: Sequence[Evidence]) -> QueueReplay:
        """Replay windows with observed service times if possible, otherwise with drawn service
        times.

        If Perseus cannot infer the service times from all windows, the replay leaves out the
        certification windows. Certification rates are far below the limit, where the exceedances of
        the virtual queue and of the real server may differ.
        """
        others = [seen for seen in windows if not seen.certifies]
        found = _observed(model, tenant, windows)
        if found is None and 0 < len(others) < len(windows):
            windows = others
            found = _observed(model, tenant, windows)
        return found or _fitted(model, tenant, windows)

    @property
    def queue(self) -> VirtualQueue:
        return self.model.queue

    @property
    def spare_s(self) -> float:
        return self.queue.spare_s[self.tenant]

    @property
    def trust(self) -> Trust:
        if self.queue.observed:
            return SEEN
        return IN_TURN if in_turn([seen.done_s for seen in self.windows]) else OUT_OF_TURN

    @property
    def similar(self) -> Floats:
        """Return, for every pair of the k windows, the similarity of their loads
        (`stats.similarity`); shape (k, k)."""
        scales = np.array([seen.scale for seen in self.windows])
        return np.array([similarity(scale, scales, SIMILAR) for scale in scales])

    @property
    def worth(self) -> Floats:
        """Return, for each window, the number of independent requests with as much information as
        one observed request; at most 1, shape (k,)."""
        counts = [seen.exceedances for seen in self.windows]
        return 1 / np.array([dispersion(counts, near) for near in self.similar])

    def spent(self) -> Iterator[tuple[Evidence, Floats]]:
        """Yield each window with the result of `VirtualQueue.spent_s` for its counted requests,
        shape (draws, n)."""
        for seen, requests in zip(self.windows, self.drawn, strict=True):
            yield seen, self.queue.spent_s(requests, self.tenant)[:, seen.first : seen.last]

    def slowed(self, factor: float) -> QueueReplay:
        return replace(self, model=replace(self.model, queue=self.queue.slowed(factor)))


def _observed(model: LineModel, tenant: int, windows: Sequence[Evidence]) -> QueueReplay | None:
    """Return the replay with the inferred service time of each request; None if Perseus cannot
    infer the service times."""
    if len(model.slas) > 1:
        return None
    arrivals_s = [seen.arrivals_s[0] for seen in windows]
    (alone_s,), (spare_s,) = model.queue.work_s, model.queue.spare_s
    work = observed_work(arrivals_s, [seen.done_s for seen in windows], alone_s)
    if work is None:
        return None
    pairs = zip(arrivals_s, work.windows_s, strict=True)
    drawn = [Drawn(arrival, work_s[None], (np.arange(len(work_s)),)) for arrival, work_s in pairs]
    queue = replace(
        model.queue,
        work_s=(np.concatenate(work.windows_s),),
        spare_s=(spare_s + percentile(alone_s, 50) - work.away_s,),
        observed=True,
    )
    return QueueReplay(replace(model, queue=queue), tenant, windows, drawn)


def _fitted(model: LineModel, tenant: int, windows: Sequence[Evidence]) -> QueueReplay:
    """Return the replay with drawn service times. One factor multiplies all service times, so that
    the virtual queue and the real server have equally many late requests."""
    drawn = [model.queue.draw(seen.arrivals_s, WORK_DRAWS) for seen in windows]
    replay = QueueReplay(model, tenant, windows, drawn)
    worth = replay.worth

    def surplus(replay: QueueReplay) -> float:
        counts = [
            np.sum(spent_s > replay.spare_s) / len(spent_s) - seen.late.sum()
            for seen, spent_s in replay.spent()
        ]
        return float(np.dot(worth, counts))

    if not any(seen.late.any() for seen in windows):
        return replay
    low, high = 0.1, 10.0
    for _ in range(14):
        middle = float(np.sqrt(low * high))
        if surplus(replay.slowed(middle)) > 0:
            high = middle
        else:
            low = middle
    return replay.slowed(float(np.sqrt(low * high)))
