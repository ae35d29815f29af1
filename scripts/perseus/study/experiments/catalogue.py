"""Define the experiment `catalogue`: a half-minute measurement of one network, for a comparison of
many networks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from perseus.study.base import Real
from perseus.study.experiments.base import ExperimentRun, ExperimentSettings
from perseus.study.problems import Problems


class Run(ExperimentRun):
    """Measurement of a tenant alone: first in the process of the client without a server, then on a
    server with two SLAs."""

    kind: Literal["catalogue"] = "catalogue"
    name: str = "catalogue"
    times_unloaded: float
    in_process_s: float

    @property
    def is_survey(self) -> bool:
        return True


class Settings(ExperimentSettings):
    """Measure a tenant alone in half a minute."""

    kind: Literal["catalogue"] = Field(
        description=(
            "`catalogue` measures a tenant alone in half a minute, in place of the search for its"
            " dedicated peak, so that you can compare many networks. It measures the throughput of"
            " the network without a server, the saturation throughput of a server, and the largest"
            " rates within two SLAs (docs/explanation/catalogue.md)."
        )
    )
    times_unloaded: Annotated[Real, Field(ge=1.1, le=100)] = Field(
        default=3.0,
        description=(
            "A second SLA, besides the SLA of the model, has this multiple of the median latency"
            " without load as its latency, and the percentile of the SLA of the model."
        ),
    )
    in_process_s: Annotated[Real, Field(ge=0.2, le=60)] = Field(
        default=2.0,
        description="Seconds of inferences without a server, in the process of the client.",
    )

    def runs(self) -> Iterator[Run]:
        yield Run(times_unloaded=self.times_unloaded, in_process_s=self.in_process_s)

    def problems(self, tenants: Sequence[str]) -> Problems:
        if len(tenants) > 1:
            yield (), "applies to scenarios of one tenant only (list one scenario for each tenant)"
