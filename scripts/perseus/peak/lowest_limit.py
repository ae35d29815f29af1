"""The limit of a load line by the windows of a search: the lowest of its tenants' limits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perseus.peak import stats
from perseus.peak.estimate import Evidence, Limit, RatesRps, limit
from perseus.peak.verdict import Verdict, counted, grace_s
from perseus.peak.virtual_queue import VirtualQueue
from perseus.peak.window import Phase, Window
from perseus.study.sla import Sla
from perseus.traffic.arrivals import Arrivals

WIDEST, ABOVE = 1.6, 1.2
"""Loads within that factor of each other are similar; how far above a scale its windows may lie,
since a queue far above its limit never settles, and its exceedance says little of the load."""


def valid_near(windows: Sequence[Window], scale: float, above: float) -> list[Window]:
    """The valid ones at similar loads, at most `above` times the scale."""
    return [
        window
        for window in windows
        if window.verdict is not Verdict.INVALID and scale / WIDEST <= window.scale <= scale * above
    ]


def line_limit(
    windows: Sequence[Window],
    near: float,
    draws: int,
    rates_rps: RatesRps,
    slas: Sequence[Sla],
    queue: VirtualQueue,
    arrivals: Arrivals,
    rng: np.random.Generator,
) -> Limit:
    """The limit by the windows near a scale; without draws where every window was spoilt."""

    grace = grace_s(slas)

    def lowest(chosen: Sequence[Window]) -> Limit:
        limits = [
            limit(
                [_evidence(window, i, sla, grace) for window in chosen],
                i,
                rates_rps,
                queue,
                sla.allowed,
                arrivals,
                rng,
                draws,
            )
            for i, sla in enumerate(slas)
            if chosen[0].tenants[i].offered_rps > 0
        ]
        scales = np.min([each.scales for each in limits], axis=0)
        if draws and len(limits) > 1:  # a median of minima, not the minimum of medians
            scales[0] = np.median(scales[1:])
        return Limit(scales, all(each.observed for each in limits))

    chosen = valid_near(windows, near, ABOVE) or valid_near(windows, near, WIDEST)
    if not chosen:  # and nothing to draw from
        return Limit(np.array([near]), observed=False)
    found = lowest(chosen)
    # What is far above `near` may lie near the limit, and speak against it.
    more = valid_near(windows, near, ABOVE * max(1.0, float(found.scales[0]) / near))
    return lowest(more) if len(more) > len(chosen) else found


def _evidence(window: Window, tenant: int, sla: Sla, grace: float) -> Evidence:
    """What a window says of one tenant's limit."""
    seen = window.seen
    part = counted(seen, tenant, window.settle_s, grace)
    first = int(np.searchsorted(seen.requests[tenant].intended_ns, part.intended_ns[:1]).sum())
    late, recovered = stats.late_and_recovered(part.latency_ms(seen.now_ns), sla.latency_ms)
    mine = seen.requests[tenant]
    return Evidence(
        scale=window.scale,
        confirms=window.phase is Phase.CONFIRM,
        arrivals_s=tuple((r.intended_ns - seen.start_ns) / 1e9 for r in seen.requests),
        done_s=np.where(mine.answered, (mine.done_ns - seen.start_ns) / 1e9, np.nan),
        first=first,
        last=first + len(part),
        late=late,
        recovered=recovered,
        exceedances=window.tenants[tenant].exceedances,
    )
