"""Define the experiment `startup`: measure the start time of a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from perseus.study.base import Different, Whole
from perseus.study.experiments.base import ExperimentRun, ExperimentSettings

PageCache = Literal["warm", "cold"]


class Run(ExperimentRun):
    """Repeated starts of a new server, which alternate between the states of the page cache (warm,
    cold)."""

    kind: Literal["startup"] = "startup"
    name: str = "startup"
    starts: int
    page_cache: tuple[PageCache, ...]

    @property
    def takes_arrivals(self) -> bool:
        return False

    @property
    def offers_load(self) -> bool:
        return False  # a closed loop with one request in flight


class Settings(ExperimentSettings):
    """Start a fresh server several times."""

    kind: Literal["startup"] = Field(
        description=(
            "`startup` starts a fresh server repeatedly. It measures the time until the server is"
            " ready, the load time of each model, and the latency of the first and of later"
            " inferences."
        )
    )
    starts: Annotated[Whole, Field(ge=1, le=200)] = Field(
        default=10, description="Number of starts for each state of the page cache."
    )
    page_cache: Annotated[tuple[PageCache, ...], Field(min_length=1), Different] = Field(
        default=("warm",),
        description=(
            "State of the page cache of the host when a server starts. With `warm`, the model files"
            " stay in the page cache. With `cold`, Perseus removes the model files from the page"
            " cache before each start, if the system supports the removal. The table `startup`"
            " states the share of the files in memory."
        ),
        json_schema_extra={"uniqueItems": True},
    )

    @property
    def starts_servers(self) -> bool:
        return True

    def runs(self) -> Iterator[Run]:
        yield Run(starts=self.starts, page_cache=self.page_cache)
