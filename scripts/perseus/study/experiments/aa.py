"""Define the experiment `aa` (A/A test): measure the same throughput on several restarted servers,
to find the noise floor of the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from perseus.study.base import Whole
from perseus.study.experiments.base import ExperimentRun, ExperimentSettings


class Run(ExperimentRun):
    """The same closed loop on one newly started server after another, with several windows on each
    server."""

    kind: Literal["aa"] = "aa"
    name: str = "aa"
    restarts: int
    windows: int
    concurrency: int

    @property
    def takes_arrivals(self) -> bool:
        return False  # closed loops use no arrival process


class Settings(ExperimentSettings):
    """Measure the same throughput on restarted servers."""

    kind: Literal["aa"] = Field(
        description=(
            "`aa` measures the throughput of the same load repeatedly, on restarted servers. The"
            " differences between the throughputs show the noise of the host, which the report"
            " states beside savings."
        )
    )
    restarts: Annotated[Whole, Field(ge=2, le=100)] = Field(
        default=5, description="Number of servers that Perseus starts one after another."
    )
    windows: Annotated[Whole, Field(ge=2, le=100)] = Field(
        default=4,
        description=(
            "Number of counted windows on each server, after one window that does not count."
        ),
    )
    concurrency: Annotated[Whole, Field(ge=1, le=1024)] = Field(
        default=4,
        description=(
            "Concurrency: number of requests of each tenant in flight, large enough to keep the"
            " server busy."
        ),
    )

    @property
    def starts_servers(self) -> bool:
        return True

    @property
    def most_in_flight(self) -> int:
        return self.concurrency

    def runs(self) -> Iterator[Run]:
        yield Run(restarts=self.restarts, windows=self.windows, concurrency=self.concurrency)
