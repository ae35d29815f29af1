"""Define the experiment `startup`: the start times of a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from perseus.study.base import Different, Whole
from perseus.study.experiments.base import ExperimentRun, ExperimentSettings

PageCache = Literal["warm", "cold"]


class Run(ExperimentRun):
    """Starts of a fresh server, for each state of the page cache in turn."""

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
            "State of the page cache of the host when a server starts. `warm` leaves the model"
            " files in the page cache. `cold` removes them before each start, if the system"
            " supports this. The table `startup` states which share of the files was in memory."
        ),
        json_schema_extra={"uniqueItems": True},
    )

    @property
    def starts_servers(self) -> bool:
        return True

    def runs(self) -> Iterator[Run]:
        yield Run(starts=self.starts, page_cache=self.page_cache)
