"""Experiment `startup`: how long a server takes to start, again and again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from perseus.study.base import Different, Whole
from perseus.study.experiments.base import ExperimentRun, ExperimentSettings

PageCache = Literal["warm", "cold"]


class Run(ExperimentRun):
    """So many starts of a fresh server for each state of the page cache, in turn."""

    kind: Literal["startup"] = "startup"
    name: str = "startup"
    starts: int
    page_cache: tuple[PageCache, ...]

    @property
    def takes_arrivals(self) -> bool:
        return False

    @property
    def offers_load(self) -> bool:
        return False  # one request after another


class Settings(ExperimentSettings):
    """Start a fresh server several times."""

    kind: Literal["startup"] = Field(
        description="`startup` starts a fresh server again and again: to ready, the load of each"
        " model, its first inference and those that follow."
    )
    starts: Annotated[Whole, Field(ge=1, le=200)] = Field(
        default=10, description="Starts for each state of the page cache."
    )
    page_cache: Annotated[tuple[PageCache, ...], Field(min_length=1), Different] = Field(
        default=("warm",),
        description="Whether the model files lie in memory when a server starts. `cold` takes them"
        " out of the page cache before each start, where the system does so; the table says what"
        " was had.",
        json_schema_extra={"uniqueItems": True},
    )

    @property
    def starts_servers(self) -> bool:
        return True

    def runs(self) -> Iterator[Run]:
        yield Run(starts=self.starts, page_cache=self.page_cache)
