"""Compute the limit of a load line: the lowest of the load factors at which the tenants reach their
own limits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perseus.peak.durations import grace_s
from perseus.peak.evidence import Evidence
from perseus.peak.line_model import LineModel
from perseus.peak.tenant_limit import Draws, Limit, tenant_limit
from perseus.peak.verdict import Verdict
from perseus.peak.window import Window

WIDEST, ABOVE = 1.6, 1.2
"""Perseus estimates a limit from windows at loads from limit / WIDEST to limit x ABOVE. At higher
loads, a queue never reaches its steady state, so the share of late requests says little about the
limit."""


def valid_near(windows: Sequence[Window], scale: float, above: float) -> list[Window]:
    """Return the valid windows with load factors from `scale` / WIDEST to `scale` x `above`."""
    return [
        window
        for window in windows
        if window.verdict is not Verdict.INVALID and scale / WIDEST <= window.scale <= scale * above
    ]


def line_limit(model: LineModel, windows: Sequence[Window], near: float, draws: Draws) -> Limit:
    """Compute the limit of a load line from the valid windows near the load factor `near`.

    If no window near `near` is valid, the result is the limit `near` without posterior draws.
    """
    chosen = valid_near(windows, near, ABOVE) or valid_near(windows, near, WIDEST)
    if not chosen:
        return Limit(np.array([near]), observed=False)
    found = _lowest(model, chosen, draws)
    # If the limit is far above `near`, windows at higher loads are evidence of the limit, too.
    more = valid_near(windows, near, ABOVE * max(1.0, float(found.scales[0]) / near))
    return _lowest(model, more, draws) if len(more) > len(chosen) else found


def _lowest(model: LineModel, windows: Sequence[Window], draws: Draws) -> Limit:
    grace = grace_s(model.slas)
    limits = [
        tenant_limit(model, i, [Evidence.of(window, i, sla, grace) for window in windows], draws)
        for i, sla in enumerate(model.slas)
        if windows[0].tenants[i].offered_rps > 0
    ]
    scales = np.min([each.scales for each in limits], axis=0)
    if draws.count and len(limits) > 1:
        # the minimum of the tenants' medians would be above the median of the minima
        scales[0] = min(scales[0], np.median(scales[1:]))
    return Limit(scales, all(each.observed for each in limits))
