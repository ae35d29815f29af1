"""Base classes of experiments: settings in the configuration, and runs, one per cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import Field

from perseus.study.base import Part, Real
from perseus.study.problems import Problems
from perseus.study.traces import TraceSource

MAX_RPS: Final = 50_000
"""Largest rate of a tenant: more than one process can send."""

Rate = Annotated[Real, Field(gt=0, le=MAX_RPS)]


class ExperimentRun(Part):
    """A run: the work of one cell. `name` is a part of the cell's name."""

    kind: str
    name: str

    @property
    def needs_dedicated_peaks(self) -> bool:
        """True if its rates are shares of dedicated peaks, which must be measured first."""
        return False

    @property
    def is_survey(self) -> bool:
        """True if it is one of many rows about tenants alone.

        It replaces the search of a dedicated peak, and a model that cannot be exported or served
        becomes a row with the reason.
        """
        return False

    @property
    def takes_arrivals(self) -> bool:
        """True if it uses the study's arrivals."""
        return True

    @property
    def offers_load(self) -> bool:
        """True if clients put load on its servers, with the study's number of processes."""
        return True

    @property
    def needs_runs(self) -> tuple[str, ...]:
        """Names of the runs of its scenario whose results it needs."""
        return ()

    @property
    def needs_copies(self) -> bool:
        """True if it needs scenarios with copies of its models, if the study has them."""
        return False

    @property
    def traces(self) -> tuple[TraceSource, ...]:
        """The traces that it replays, each once."""
        return ()

    @property
    def files(self) -> tuple[str, ...]:
        """Files that it reads, as named in the configuration: inputs of its job."""
        return tuple(dict.fromkeys(source.file for source in self.traces))


class ExperimentSettings(Part):
    """Settings of one experiment of a scenario."""

    kind: str

    @property
    def starts_servers(self) -> bool:
        """True if it measures starts, which is impossible for served models."""
        return False

    @property
    def most_in_flight(self) -> int:
        """Largest number of requests of each tenant in flight in its closed loops; 0 without
        closed loops."""
        return 0

    def runs(self) -> Iterator[ExperimentRun]:
        """Yield one run for each cell, without repeats."""
        raise NotImplementedError

    def runs_for(self, rate_shares: tuple[float, ...]) -> Iterator[ExperimentRun]:
        """Return the runs for a demand with these shares of all requests per tenant; empty if the
        demand does not name all of them."""
        return self.runs()

    def renamed(self, names: Mapping[str, str]) -> Self:
        """Return the same settings with other tenant names; `names` has the new name by the old
        one."""
        return self

    def problems(self, tenants: Sequence[str]) -> Problems:
        """Return problems in a scenario with these tenants; places are relative to the settings."""
        yield from ()

    def file_problems(self, tenants: Sequence[str], folder: Path) -> Problems:
        """Return the problems of the files that it names, relative to `folder`."""
        yield from ()
