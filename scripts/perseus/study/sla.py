"""Define the SLA of a model: a response-time target."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from perseus.study.base import Part, Real


class Sla(Part):
    """A response-time target (SLA): at least `percentile` % of the requests get a response within
    `latency_ms` after the intended send time."""

    percentile: Annotated[Real, Field(ge=50, le=99.9)] = Field(
        default=95.0,
        description=(
            "The share of requests, in percent, that must get a response within the time limit."
        ),
    )
    latency_ms: Annotated[Real, Field(gt=0, le=600_000)] = Field(
        description="The time limit from the intended send time to the response, in milliseconds.",
        examples=[100.0],
    )

    @property
    def allowed(self) -> float:
        """Largest share (0 to 1) of late requests that the SLA allows, such as 0.05 for p95."""
        # Without rounding, 1 - 90 / 100 < 0.1, so one late request in ten would be too many.
        return round(1 - self.percentile / 100, 12)
