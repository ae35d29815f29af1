"""Experiment `concurrency`: closed loops at several numbers of requests in flight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from perseus.study.base import Different, Whole
from perseus.study.experiments.base import ExperimentRun, ExperimentSettings

Concurrency = Annotated[Whole, Field(ge=1, le=1024)]


class Run(ExperimentRun):
    """The numbers of requests in flight of each tenant, in turn."""

    kind: Literal["concurrency"] = "concurrency"
    name: str = "concurrency"
    concurrencies: tuple[int, ...]

    @property
    def takes_arrivals(self) -> bool:
        return False  # closed loops


class Settings(ExperimentSettings):
    """Keep fixed numbers of requests in flight."""

    kind: Literal["concurrency"] = Field(
        description=(
            "`concurrency` keeps a fixed number of requests in flight. It measures throughput, and"
            " its results are comparable with those of tools that measure in closed loops."
        )
    )
    concurrencies: Annotated[tuple[Concurrency, ...], Field(min_length=1), Different] = Field(
        description="Requests of each tenant in flight (a list such as [1, 4, 16]).",
        examples=[[1, 4, 16]],
        json_schema_extra={"uniqueItems": True},
    )

    @property
    def most_in_flight(self) -> int:
        return max(self.concurrencies)

    def runs(self) -> Iterator[Run]:
        yield Run(concurrencies=tuple(sorted(self.concurrencies)))
