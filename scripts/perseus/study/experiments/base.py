"""Define the two base classes of each kind of experiment: its settings in the configuration, and
its runs (what Perseus measures in one cell)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import Field

from perseus.study.base import Part, Real
from perseus.study.problems import Problems
from perseus.study.traces import TraceSource

MAX_RPS: Final = 50_000
"""Largest allowed rate of a tenant in requests/s: more than a client process can send."""

Rate = Annotated[Real, Field(gt=0, le=MAX_RPS)]


class ExperimentRun(Part):
    """What an experiment measures in one cell, such as the peak of one mix.

    `name` is unique in the scenario. The name is part of the id of the cell, and of file names.
    """

    kind: str
    name: str

    @property
    def needs_dedicated_peaks(self) -> bool:
        """True if the rates of the run are shares of dedicated peaks. Perseus must then measure
        these peaks before the run."""
        return False

    @property
    def is_survey(self) -> bool:
        """True if the run is a survey: a short measurement of one tenant alone, for the table
        `catalogue`.

        The survey replaces the search for the dedicated peak of the tenant, unless the scenario
        also has an experiment `peak`, or another run needs this peak. If a model cannot be exported
        or served, its row in the table `catalogue` says why, and the study continues.
        """
        return False

    @property
    def takes_arrivals(self) -> bool:
        """True if the run uses the arrival process in `measurement.arrivals`. If the user changes
        this process, Perseus measures the run again."""
        return True

    @property
    def offers_load(self) -> bool:
        """True if the run uses the number of processes in `measurement.client`. If the user changes
        this number, Perseus measures the run again."""
        return True

    @property
    def needs_runs(self) -> tuple[str, ...]:
        """Names of the runs of the scenario whose results this run uses. Perseus measures these
        runs first."""
        return ()

    @property
    def needs_copies(self) -> bool:
        """True if Perseus may predict the result of the run. For the prediction, Perseus uses the
        results of scenarios with several copies of one model."""
        return False

    @property
    def traces(self) -> tuple[TraceSource, ...]:
        """Traces (recorded arrivals) that the run replays."""
        return ()

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of the files that the run reads, as in the configuration. If one of these files
        changes, Snakemake repeats the job."""
        return tuple(dict.fromkeys(source.file for source in self.traces))


class ExperimentSettings(Part):
    """Settings of one experiment: an entry in the list `experiments` of a scenario."""

    kind: str

    @property
    def starts_servers(self) -> bool:
        """True if the experiment starts the server several times. Such an experiment is impossible
        with a `served_model`, because Perseus cannot restart the server of the user."""
        return False

    @property
    def most_in_flight(self) -> int:
        """Largest number of requests that a tenant has in flight in a closed loop; 0 if the
        experiment has no closed loops."""
        return 0

    def runs(self) -> Iterator[ExperimentRun]:
        """Yield what the experiment measures: one run for each load line, for example one for each
        mix. All repeats of a load line have the same run."""
        raise NotImplementedError

    def runs_for(self, rate_shares: tuple[float, ...]) -> Iterator[ExperimentRun]:
        """Yield the runs of the experiment in a study with a demand.

        `rate_shares` contains each tenant's share (0 to 1) of all requests of the demand. If the
        demand does not name the models of all tenants, `rate_shares` is empty.
        """
        return self.runs()

    def renamed(self, names: Mapping[str, str]) -> Self:
        """Return a copy of the settings in which tenants have other names. Perseus renames tenants
        in scenarios with a grid. `names` maps each old name to its new name."""
        return self

    def problems(self, tenants: Sequence[str]) -> Problems:
        """Yield the problems of the settings in a scenario whose tenants have the names `tenants`.

        The place of a problem is a path of keys, relative to the settings.
        """
        yield from ()

    def file_problems(self, tenants: Sequence[str], folder: Path) -> Problems:
        """Yield the problems of the files that the settings name, such as trace files. The paths of
        the files are relative to `folder`."""
        yield from ()
