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
    """Statistics of the send lags of the requests in a window. `lag_p50_ms` is the median send lag
    of the sent requests, `lag_p99_ms` is the 99th percentile, and `lag_max_ms` is the maximum.
    `punctual` is the share of all requests that the client sent at most PUNCTUAL_MS ms late.
    `unsent` is the number of requests that the client did not send."""

    lag_p50_ms: float
    lag_p99_ms: float
    lag_max_ms: float
    punctual: float
    unsent: int


def fidelity(requests: Requests) -> Fidelity:
    """Return statistics of the send lags in a window. If the window has no requests, all values
    except `unsent` are NaN."""
    sent = requests.sent_ns > 0
    lag_ms = (requests.sent_ns - requests.intended_ns)[sent] / MS
    return Fidelity(
        lag_p50_ms=stats.percentile(lag_ms, 50),
        lag_p99_ms=stats.percentile(lag_ms, 99),
        lag_max_ms=stats.percentile(lag_ms, 100),
        punctual=float(np.sum(lag_ms <= PUNCTUAL_MS)) / len(requests) if len(requests) else np.nan,
        unsent=int(np.sum(~sent)),
    )
