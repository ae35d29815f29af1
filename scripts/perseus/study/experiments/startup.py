"""Define the experiment `startup`: measure how long a server takes to start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from perseus.study.base import Different, Whole
from perseus.study.experiments.base import ExperimentRun, ExperimentSettings

PageCache = Literal["warm", "cold"]


class Run(ExperimentRun):
    """Start a new server `starts` times for each state in `page_cache`. If `page_cache` contains
    both states ("warm" and "cold"), the states alternate from start to start."""

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
    """Start a new server several times, and measure each start."""

    kind: Literal["startup"] = Field(
        description=(
            "`startup` starts a new server several times. Perseus measures the time until the"
            " server is ready, the load time of each model, and the latency of the first request"
            " and of later requests."
        )
    )
    starts: Annotated[Whole, Field(ge=1, le=200)] = Field(
        default=10, description="Number of starts for each state in `page_cache`."
    )
    page_cache: Annotated[tuple[PageCache, ...], Field(min_length=1), Different] = Field(
        default=("warm",),
        description=(
            "The states of the host's page cache (file content in memory) in which Perseus starts"
            " the server. `warm`: the model files stay in the page cache. `cold`: Perseus removes"
            " the model files from the page cache before each start, if the system allows this. The"
            " table `startup` states which share of the model files was in memory before the start."
            " For a remote server, only `warm` is possible."
        ),
        json_schema_extra={"uniqueItems": True},
    )

    @property
    def starts_servers(self) -> bool:
        return True

    def runs(self) -> Iterator[Run]:
        yield Run(starts=self.starts, page_cache=self.page_cache)
