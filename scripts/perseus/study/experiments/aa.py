"""Experiment `aa`: the same again on restarted servers (A/A), for the noise floor of the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from perseus.study.base import Whole
from perseus.study.experiments.base import ExperimentRun, ExperimentSettings


class Run(ExperimentRun):
    """So many windows of one closed loop on each of so many servers, started one after another."""

    kind: Literal["aa"] = "aa"
    name: str = "aa"
    restarts: int
    windows: int
    concurrency: int

    @property
    def takes_arrivals(self) -> bool:
        return False  # closed loops


class Settings(ExperimentSettings):
    """Measure the same again on restarted servers."""

    kind: Literal["aa"] = Field(
        description="`aa` measures the same capacity again and again, on restarted servers: what"
        " differs is the noise of the host, which the report names beside savings."
    )
    restarts: Annotated[Whole, Field(ge=2, le=100)] = Field(
        default=5, description="Servers, started one after another."
    )
    windows: Annotated[Whole, Field(ge=2, le=100)] = Field(
        default=4, description="Windows that count on each server, after one that does not."
    )
    concurrency: Annotated[Whole, Field(ge=1, le=1024)] = Field(
        default=4, description="Requests of each tenant in flight: enough to keep the server busy."
    )

    @property
    def starts_servers(self) -> bool:
        return True

    @property
    def most_in_flight(self) -> int:
        return self.concurrency

    def runs(self) -> Iterator[Run]:
        yield Run(restarts=self.restarts, windows=self.windows, concurrency=self.concurrency)
