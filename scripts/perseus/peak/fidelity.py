"""Compute how close the actual send times are to the intended send times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from perseus.peak import stats
from perseus.traffic.requests import MS, Requests

PUNCTUAL_MS: Final = 1.0


@dataclass(frozen=True)
class Fidelity:
    """The send lags of the sent requests, the share of requests sent within PUNCTUAL_MS of their
    intended time, and the number of requests dropped by the client."""

    lag_p50_ms: float
    lag_p99_ms: float
    lag_max_ms: float
    punctual: float
    unsent: int


def fidelity(requests: Requests) -> Fidelity:
    """Return statistics of the send lags in a window. Without requests, the statistics are NaN."""
    sent = requests.sent_ns > 0
    lag_ms = (requests.sent_ns - requests.intended_ns)[sent] / MS
    return Fidelity(
        lag_p50_ms=stats.percentile(lag_ms, 50),
        lag_p99_ms=stats.percentile(lag_ms, 99),
        lag_max_ms=stats.percentile(lag_ms, 100),
        punctual=float(np.sum(lag_ms <= PUNCTUAL_MS)) / len(requests) if len(requests) else np.nan,
        unsent=int(np.sum(~sent)),
    )
