"""Schedule fidelity: how exactly the requests of a window were sent when they should have been."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from perseus.peak import stats
from perseus.traffic.requests import MS, Requests

PUNCTUAL_MS: Final = 1.0


@dataclass(frozen=True)
class Fidelity:
    """The send lag (sent - intended) of what was sent, the share of all requests that were sent
    within PUNCTUAL_MS of their time, and how many were never sent."""

    lag_p50_ms: float
    lag_p99_ms: float
    lag_max_ms: float
    punctual: float
    unsent: int


def fidelity(requests: Requests) -> Fidelity:
    """Of all requests of a window; NaN where there are none."""
    sent = requests.sent_ns > 0
    lag_ms = (requests.sent_ns - requests.intended_ns)[sent] / MS
    return Fidelity(
        lag_p50_ms=stats.percentile(lag_ms, 50),
        lag_p99_ms=stats.percentile(lag_ms, 99),
        lag_max_ms=stats.percentile(lag_ms, 100),
        punctual=float(np.sum(lag_ms <= PUNCTUAL_MS)) / len(requests) if len(requests) else np.nan,
        unsent=int(np.sum(~sent)),
    )
