"""Define the experiment `aa` (A/A test): measure the throughput at the same load on several
restarted servers, to find how much results on this host differ by chance (noise floor)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from perseus.study.base import Whole
from perseus.study.experiments.base import ExperimentRun, ExperimentSettings


class Run(ExperimentRun):
    """Start `restarts` servers one after another. On each server, measure `windows` windows, in
    which each tenant keeps `concurrency` requests in flight."""

    kind: Literal["aa"] = "aa"
    name: str = "aa"
    restarts: int
    windows: int
    concurrency: int

    @property
    def takes_arrivals(self) -> bool:
        return False  # closed loops use no arrival process


class Settings(ExperimentSettings):
    """Measure the throughput at the same load on several restarted servers."""

    kind: Literal["aa"] = Field(
        description=(
            "`aa` measures the throughput at the same load several times, and restarts the server"
            " in between. The throughputs differ only by chance, so their differences show how much"
            " other results on this host may differ by chance (noise floor). The report compares"
            " savings with the noise floor."
        )
    )
    restarts: Annotated[Whole, Field(ge=2, le=100)] = Field(
        default=5,
        description="Number of times that Perseus starts the server and measures its throughput.",
    )
    windows: Annotated[Whole, Field(ge=2, le=100)] = Field(
        default=4,
        description=(
            "Number of windows that Perseus measures after each start. Before these windows,"
            " Perseus runs one more window and discards its result."
        ),
    )
    concurrency: Annotated[Whole, Field(ge=1, le=1024)] = Field(
        default=4,
        description=(
            "Number of requests that each tenant keeps in flight. Choose a number that keeps the"
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
