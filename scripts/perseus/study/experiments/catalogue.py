"""Define the experiment `catalogue`: measure each of many neural networks for half a minute, to
compare them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from perseus.study.base import Real
from perseus.study.experiments.base import ExperimentRun, ExperimentSettings
from perseus.study.problems import Problems


class Run(ExperimentRun):
    """Measure one tenant alone: first its network without a server, then on a server.

    The measurement without a server lasts at least `in_process_s` seconds. The measurement on the
    server uses two SLAs: the SLA of the model, and a second SLA. The latency limit of the second
    SLA is `times_unloaded` times the median latency of single requests.
    """

    kind: Literal["catalogue"] = "catalogue"
    name: str = "catalogue"
    times_unloaded: float
    in_process_s: float

    @property
    def is_survey(self) -> bool:
        return True


class Settings(ExperimentSettings):
    """Measure a tenant alone for half a minute."""

    kind: Literal["catalogue"] = Field(
        description=(
            "`catalogue` measures a tenant alone in half a minute, so that you can compare many"
            " networks. Perseus measures the throughput of the network without a server, the"
            " saturation throughput of the server, and the largest rate at which the tenant keeps"
            " each of two SLAs (docs/explanation/catalogue.md). These measurements replace the"
            " longer search for the dedicated peak of the tenant. Perseus runs this search only if"
            " the scenario also has an experiment `peak`, or another experiment that needs the"
            " dedicated peak."
        )
    )
    times_unloaded: Annotated[Real, Field(ge=1.1, le=100)] = Field(
        default=3.0,
        description=(
            "The latency limit of the second SLA, as a multiple of the median latency of single"
            " requests on a server without other load. Both SLAs have the percentile of the model's"
            " SLA."
        ),
    )
    in_process_s: Annotated[Real, Field(ge=0.2, le=60)] = Field(
        default=2.0,
        description="Shortest duration of the measurement without a server, in seconds.",
    )

    def runs(self) -> Iterator[Run]:
        yield Run(times_unloaded=self.times_unloaded, in_process_s=self.in_process_s)

    def problems(self, tenants: Sequence[str]) -> Problems:
        if len(tenants) > 1:
            yield (), "needs a scenario of one tenant (write one scenario for each tenant)"
