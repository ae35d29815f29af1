"""Define the experiment `slowdown`: measure the latency of each tenant alone, and in each pair with
another tenant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from perseus.study.base import Real, Whole
from perseus.study.experiments.base import MAX_RPS, ExperimentRun, ExperimentSettings
from perseus.study.problems import Problems

USUAL_PERCENT = 30
"""Default rate of each tenant, in percent of its dedicated peak. The rate is high enough that some
requests must wait for requests of the other tenant. The rate is low enough that two tenants
together usually do not reach the limit of the server."""


class Run(ExperimentRun):
    """Measure each tenant alone and each pair of tenants, `rounds` times.

    The rate of each tenant is `percent_of_peak` % of its dedicated peak, or `rate_rps` requests/s.
    One of `percent_of_peak` and `rate_rps` is None.
    """

    kind: Literal["slowdown"] = "slowdown"
    name: str
    percent_of_peak: int | None
    rate_rps: float | None
    rounds: int

    @property
    def needs_dedicated_peaks(self) -> bool:
        return self.percent_of_peak is not None


class Settings(ExperimentSettings):
    """Measure the latency of each tenant alone, and in each pair with another tenant."""

    kind: Literal["slowdown"] = Field(
        description=(
            "`slowdown` measures the latency of each tenant in two situations: together with one"
            " other tenant on the same server, and alone at the same rate. The slowdown is the"
            " first latency divided by the second. Perseus measures all pairs of tenants."
        )
    )
    percent_of_peak: Annotated[Whole, Field(ge=1, le=99)] | None = Field(
        default=None,
        description=(
            f"The rate of each tenant, in percent of its dedicated peak. Default: {USUAL_PERCENT},"
            " if there is no `rate_rps`."
        ),
    )
    rate_rps: Annotated[Real, Field(ge=0.1, le=MAX_RPS)] | None = Field(
        default=None,
        description="The rate of every tenant in requests/s, in place of `percent_of_peak`.",
    )
    rounds: Annotated[Whole, Field(ge=2, le=100)] = Field(
        default=3,
        description=(
            "How many times Perseus measures each tenant alone and each pair of tenants. The order"
            " is random in each round."
        ),
    )

    def runs(self) -> Iterator[Run]:
        if self.rate_rps is not None:
            rate = f"{self.rate_rps:.10g}".replace(".", "_")
            yield Run(
                name=f"slowdown-{rate}rps",
                percent_of_peak=None,
                rate_rps=self.rate_rps,
                rounds=self.rounds,
            )
        else:
            percent = USUAL_PERCENT if self.percent_of_peak is None else self.percent_of_peak
            yield Run(
                name=f"slowdown-{percent}",
                percent_of_peak=percent,
                rate_rps=None,
                rounds=self.rounds,
            )

    def problems(self, tenants: Sequence[str]) -> Problems:
        if len(tenants) == 1:
            yield (), "`slowdown` needs at least two tenants"
        if self.percent_of_peak is not None and self.rate_rps is not None:
            yield (), "has both `percent_of_peak:` and `rate_rps:` (remove one of them)"
