"""Compute statistics of the send lags: how late the client sent the requests of a window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from perseus.peak import stats
from perseus.traffic.requests import MS, Requests

PUNCTUAL_MS: Final = 1.0
"""A request counts as sent on schedule if its send lag in ms is at most this value."""


@dataclass(frozen=True)
class Fidelity:
    """Statistics of the send lags of the requests in a window.

    `lag_p50_ms`, `lag_p99_ms` and `lag_max_ms` are the median, the 99th percentile and the maximum
    of the send lags of the sent requests. `punctual` is the share of all requests that the client
    sent at most PUNCTUAL_MS late. `unsent` is the number of requests that the client did not send.
    """

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
