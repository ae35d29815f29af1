"""Define the experiment `concurrency`: measure throughput and latency in closed loops, with several
numbers of requests in flight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from perseus.study.base import Different, Whole
from perseus.study.experiments.base import ExperimentRun, ExperimentSettings

Concurrency = Annotated[Whole, Field(ge=1, le=1024)]


class Run(ExperimentRun):
    """Run one closed loop for each number in `concurrencies`, one after another. In a loop, each
    tenant keeps this number of requests in flight."""

    kind: Literal["concurrency"] = "concurrency"
    name: str = "concurrency"
    concurrencies: tuple[int, ...]

    @property
    def takes_arrivals(self) -> bool:
        return False  # closed loops use no arrival process


class Settings(ExperimentSettings):
    """Keep a fixed number of requests in flight, in a closed loop."""

    kind: Literal["concurrency"] = Field(
        description=(
            "`concurrency` measures throughput and latency while each tenant has a fixed number of"
            " requests in flight (a closed loop). You can compare the results with the results of"
            " other tools that measure in closed loops."
        )
    )
    concurrencies: Annotated[tuple[Concurrency, ...], Field(min_length=1), Different] = Field(
        description=(
            "The numbers of requests that each tenant keeps in flight, such as [1, 4, 16]. Perseus"
            " measures each number in a closed loop of its own."
        ),
        examples=[[1, 4, 16]],
        json_schema_extra={"uniqueItems": True},
    )

    @property
    def most_in_flight(self) -> int:
        return max(self.concurrencies)

    def runs(self) -> Iterator[Run]:
        yield Run(concurrencies=tuple(sorted(self.concurrencies)))
