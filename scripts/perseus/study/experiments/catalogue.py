"""Experiment `catalogue`: a half-minute measurement of a network, so that many can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from perseus.study.base import Real
from perseus.study.experiments.base import ExperimentRun, ExperimentSettings
from perseus.study.problems import Problems


class Run(ExperimentRun):
    """A tenant alone: in process, and served within two SLAs."""

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
        description="`catalogue` measures a tenant alone in half a minute, in place of the search"
        " of its dedicated peak, so that many networks can be compared: its rate in process, its"
        " rate on a full server, and its limits within two SLAs (docs/explanation/catalogue.md)."
    )
    times_unloaded: Annotated[Real, Field(ge=1.1, le=100)] = Field(
        default=3.0,
        description=(
            "The second SLA beside the model's: this multiple of the median latency of single"
            " requests without load, with the percentile of the model's SLA."
        ),
    )
    in_process_s: Annotated[Real, Field(ge=0.2, le=60)] = Field(
        default=2.0, description="Seconds of inferences in process, without a server."
    )

    def runs(self) -> Iterator[Run]:
        yield Run(times_unloaded=self.times_unloaded, in_process_s=self.in_process_s)

    def problems(self, tenants: Sequence[str]) -> Problems:
        if len(tenants) > 1:
            yield (), "is for one tenant alone (list a scenario for each)"
