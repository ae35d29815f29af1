"""What every kind of experiment has: settings in the configuration, and runs, one for each cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import Field

from perseus.study.base import Part, Real
from perseus.study.problems import Problems
from perseus.study.traces import TraceSource

MOST_RPS: Final = 50_000
"""More than one process can send."""

Rate = Annotated[Real, Field(gt=0, le=MOST_RPS)]


class ExperimentRun(Part):
    """What one cell does. `name` is its part of the cell's name."""

    kind: str
    name: str

    @property
    def needs_dedicated_peaks(self) -> bool:
        """Whether its rates are shares of the dedicated peaks, which are measured before then."""
        return False

    @property
    def is_survey(self) -> bool:
        """Whether it is one row of many about tenants alone: it stands for the search of a
        dedicated peak, and what cannot be exported or served is a row that says why."""
        return False

    @property
    def takes_arrivals(self) -> bool:
        """Whether requests come as the study says, by its arrivals: others concern it then."""
        return True

    @property
    def offers_load(self) -> bool:
        """Whether clients put its servers under load, in as many processes as the study says."""
        return True

    @property
    def needs_runs(self) -> tuple[str, ...]:
        """Names of the runs of its scenario whose results decide on what it measures."""
        return ()

    @property
    def needs_copies(self) -> bool:
        """Whether what models do beside copies of themselves on its server decides on what it
        measures, where the study asks for that."""
        return False

    @property
    def traces(self) -> tuple[TraceSource, ...]:
        """Traces that it replays, each once."""
        return ()

    @property
    def files(self) -> tuple[str, ...]:
        """Files that it reads, which the configuration names: inputs of its job."""
        return tuple(dict.fromkeys(source.file for source in self.traces))


class ExperimentSettings(Part):
    """What a scenario asks of one kind of experiment."""

    kind: str

    @property
    def starts_servers(self) -> bool:
        """Whether it asks what a start does, which is nothing for models that a server has."""
        return False

    @property
    def most_in_flight(self) -> int:
        """Requests of each tenant that its closed loops keep in flight; 0 where it has none."""
        return 0

    def runs(self) -> Iterator[ExperimentRun]:
        """One for each cell, but for the repeats."""
        raise NotImplementedError

    def runs_for(self, rate_shares: tuple[float, ...]) -> Iterator[ExperimentRun]:
        """The same in a study whose demand asks each tenant for that share of all requests; empty
        where it does not ask for all of them."""
        return self.runs()

    def renamed(self, names: Mapping[str, str]) -> Self:
        """The same of tenants that are called otherwise: new names by the old ones."""
        return self

    def problems(self, tenants: Sequence[str]) -> Problems:
        """What is wrong with it in a scenario of these tenants; places are within the settings."""
        yield from ()

    def file_problems(self, tenants: Sequence[str], folder: Path) -> Problems:
        """What is wrong with the files that it names, whose paths start from `folder`."""
        yield from ()
