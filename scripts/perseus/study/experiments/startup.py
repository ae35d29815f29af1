"""Define the experiment `startup`: measure the start time of a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from perseus.study.base import Different, Whole
from perseus.study.experiments.base import ExperimentRun, ExperimentSettings

PageCache = Literal["warm", "cold"]


class Run(ExperimentRun):
    """Start a new server `starts` times for each state of the page cache. If `page_cache` has both
    states (warm, cold), the state alternates between the starts."""

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
    """Measure several starts, each with a new server."""

    kind: Literal["startup"] = Field(
        description=(
            "`startup` starts a new server repeatedly, and measures the time until the server is"
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
            "State of the host's page cache when Triton starts. With `warm`, the model files stay"
            " in the page cache. With `cold`, Perseus removes the model files from the page cache"
            " before each start, if the system supports the removal. The table `startup` states the"
            " share of the model files that was in memory before the server started. For a remote"
            " server, the state must be `warm`."
        ),
        json_schema_extra={"uniqueItems": True},
    )

    @property
    def starts_servers(self) -> bool:
        return True

    def runs(self) -> Iterator[Run]:
        yield Run(starts=self.starts, page_cache=self.page_cache)
