"""Define the base classes of experiments: settings in the configuration, and runs with one cell
each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import Field

from perseus.study.base import Part, Real
from perseus.study.problems import Problems
from perseus.study.traces import TraceSource

MAX_RPS: Final = 50_000
"""Largest allowed rate of a tenant, which is more than one process can send."""

Rate = Annotated[Real, Field(gt=0, le=MAX_RPS)]


class ExperimentRun(Part):
    """A run is the work of one cell of an experiment. `name` is a part of the id of the cell."""

    kind: str
    name: str

    @property
    def needs_dedicated_peaks(self) -> bool:
        """True if the rates of the run are shares of dedicated peaks. Perseus then measures the
        dedicated peaks first."""
        return False

    @property
    def is_survey(self) -> bool:
        """True if the run measures one tenant alone for the table `catalogue`.

        The run replaces the search for a dedicated peak. A model that cannot be exported or served
        becomes a row of the table with the reason.
        """
        return False

    @property
    def takes_arrivals(self) -> bool:
        """True if the run uses the arrival process of the study."""
        return True

    @property
    def offers_load(self) -> bool:
        """True if the run uses the number of client processes of the study."""
        return True

    @property
    def needs_runs(self) -> tuple[str, ...]:
        """Names of the runs of the same scenario whose results this run needs."""
        return ()

    @property
    def needs_copies(self) -> bool:
        """True if the run uses the results of scenarios in which one of its models shares the
        server with copies of itself. The study need not have such scenarios."""
        return False

    @property
    def traces(self) -> tuple[TraceSource, ...]:
        """Traces that the run replays, each trace once."""
        return ()

    @property
    def files(self) -> tuple[str, ...]:
        """Files that the run reads, as named in the configuration; these files are inputs of the
        job."""
        return tuple(dict.fromkeys(source.file for source in self.traces))


class ExperimentSettings(Part):
    """Settings of one experiment of a scenario."""

    kind: str

    @property
    def starts_servers(self) -> bool:
        """True if the experiment starts several servers, which is impossible for a server that
        already runs."""
        return False

    @property
    def most_in_flight(self) -> int:
        """Largest configured concurrency of each tenant in closed loops; 0 without closed loops."""
        return 0

    def runs(self) -> Iterator[ExperimentRun]:
        """Yield one run for each cell of the experiment, without repeats."""
        raise NotImplementedError

    def runs_for(self, rate_shares: tuple[float, ...]) -> Iterator[ExperimentRun]:
        """Yield the runs for a demand in which each tenant has this share of all requests.

        The shares are empty if the demand does not name all tenants.
        """
        return self.runs()

    def renamed(self, names: Mapping[str, str]) -> Self:
        """Return the same settings with other names of tenants; `names` maps each old name to the
        new name."""
        return self

    def problems(self, tenants: Sequence[str]) -> Problems:
        """Return the problems of the settings in a scenario with these tenants.

        The place of a problem is relative to the settings.
        """
        yield from ()

    def file_problems(self, tenants: Sequence[str], folder: Path) -> Problems:
        """Return the problems of the files that the settings name; paths are relative to
        `folder`."""
        yield from ()
