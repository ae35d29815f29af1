"""The limit of a load line: the lowest limit of its tenants."""

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
"""Factor within which loads are similar, and factor above a load factor up to which windows
count. A queue far above its limit never settles, so its exceedance is hardly evidence of the
limit."""


def valid_near(windows: Sequence[Window], scale: float, above: float) -> list[Window]:
    """Valid windows at similar loads, up to `above` times the scale."""
    return [
        window
        for window in windows
        if window.verdict is not Verdict.INVALID and scale / WIDEST <= window.scale <= scale * above
    ]


def line_limit(model: LineModel, windows: Sequence[Window], near: float, draws: Draws) -> Limit:
    """Return the limit from the windows near a load factor; without draws if every window is
    invalid."""
    chosen = valid_near(windows, near, ABOVE) or valid_near(windows, near, WIDEST)
    if not chosen:  # and no data for draws
        return Limit(np.array([near]), observed=False)
    found = _lowest(model, chosen, draws)
    # A load far above `near` may be close to the limit, and thus evidence against `near`.
    more = valid_near(windows, near, ABOVE * max(1.0, float(found.scales[0]) / near))
    return _lowest(model, more, draws) if len(more) > len(chosen) else found


def _lowest(model: LineModel, windows: Sequence[Window], draws: Draws) -> Limit:
    """The lowest of the limits of all tenants that have load."""
    grace = grace_s(model.slas)
    limits = [
        tenant_limit(model, i, [Evidence.of(window, i, sla, grace) for window in windows], draws)
        for i, sla in enumerate(model.slas)
        if windows[0].tenants[i].offered_rps > 0
    ]
    scales = np.min([each.scales for each in limits], axis=0)
    if draws.count and len(limits) > 1:  # the median of minima, not the minimum of medians
        scales[0] = min(scales[0], np.median(scales[1:]))
    return Limit(scales, all(each.observed for each in limits))
