"""A response-time target."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sla:
    """At least `percentile` % of requests are answered within `latency_ms` of the intended send."""

    percentile: float
    latency_ms: float

    @property
    def allowed(self) -> float:
        """The share of requests that may exceed the latency."""
        return 1 - self.percentile / 100
