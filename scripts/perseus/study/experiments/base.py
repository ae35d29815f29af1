"""Define the base classes of experiments: settings (in the configuration) and runs (what Perseus
measures in one cell)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import Field

from perseus.study.base import Part, Real
from perseus.study.problems import Problems
from perseus.study.traces import TraceSource

MAX_RPS: Final = 50_000
"""Largest allowed rate of a tenant in requests/s. No client process can send requests at this
rate."""

Rate = Annotated[Real, Field(gt=0, le=MAX_RPS)]


class ExperimentRun(Part):
    """What an experiment measures in one cell. The id of the cell contains `name`."""

    kind: str
    name: str

    @property
    def needs_dedicated_peaks(self) -> bool:
        """True if the rates of the run are shares of dedicated peaks (peaks of tenants alone on a
        server)."""
        return False

    @property
    def is_survey(self) -> bool:
        """True if the run is a short measurement of one tenant alone for the table `catalogue`.

        The measurement replaces the search for the dedicated peak of the tenant, unless the
        scenario also has an experiment `peak`, or another run needs this peak. If a model cannot be
        exported or served, its row in the table `catalogue` says why.
        """
        return False

    @property
    def takes_arrivals(self) -> bool:
        """True if the run uses the arrival process of the study."""
        return True

    @property
    def offers_load(self) -> bool:
        """True if the run uses the study's number of client processes."""
        return True

    @property
    def needs_runs(self) -> tuple[str, ...]:
        """Names of the runs of the same scenario whose results this run needs."""
        return ()

    @property
    def needs_copies(self) -> bool:
        """True if the run uses the results of scenarios with several copies of one model."""
        return False

    @property
    def traces(self) -> tuple[TraceSource, ...]:
        """Traces that the run replays, without duplicates."""
        return ()

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of the files that the run reads, as written in the configuration. Each of the files
        is an input of the Snakemake job."""
        return tuple(dict.fromkeys(source.file for source in self.traces))


class ExperimentSettings(Part):
    """Settings of one experiment of a scenario."""

    kind: str

    @property
    def starts_servers(self) -> bool:
        """True if the experiment starts several servers. Perseus cannot restart the server of a
        `served_model`, so this experiment is impossible with a `served_model`."""
        return False

    @property
    def most_in_flight(self) -> int:
        """Largest number of requests that a tenant has in flight in a closed loop; 0 if the
        experiment has no closed loops."""
        return 0

    def runs(self) -> Iterator[ExperimentRun]:
        """Yield the runs of the experiment. The function yields each run once, not once for each
        repeat."""
        raise NotImplementedError

    def runs_for(self, rate_shares: tuple[float, ...]) -> Iterator[ExperimentRun]:
        """Yield the runs of the experiment. `rate_shares` has one value for each tenant: its share
        (0 to 1) of all requests of the demand.

        `rate_shares` is empty if the demand does not name all tenants.
        """
        return self.runs()

    def renamed(self, names: Mapping[str, str]) -> Self:
        """Return a copy of the settings with other names of tenants. `names` maps each old name to
        its new name."""
        return self

    def problems(self, tenants: Sequence[str]) -> Problems:
        """Yield the problems of the settings in a scenario with these tenants.

        The place of a problem is a path of keys inside the settings.
        """
        yield from ()

    def file_problems(self, tenants: Sequence[str], folder: Path) -> Problems:
        """Yield the problems of the files that the settings name. Paths of files are relative to
        `folder`."""
        yield from ()
