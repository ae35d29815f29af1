"""A response-time target."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from perseus.study.base import Part, Real


class Sla(Part):
    """A response-time target: at least `percentile` % of the requests get a response within
    `latency_ms` of the intended send."""

    percentile: Annotated[Real, Field(ge=50, le=99.9)] = Field(
        default=95.0,
        description="The share of requests, in percent, that must be answered in time.",
    )
    latency_ms: Annotated[Real, Field(gt=0, le=600_000)] = Field(
        description="The time limit, from the intended send to the answer, in milliseconds.",
        examples=[100.0],
    )

    @property
    def allowed(self) -> float:
        """The share of requests that may exceed the latency."""
        return 1 - self.percentile / 100
