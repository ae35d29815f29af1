"""Read the inputs of the tables of a study, and derive the peaks and plans that several tables
need."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Self, TypeVar

from perseus.results import windows
from perseus.results.client_ceiling import Ceiling
from perseus.results.client_load import Requests, ceiling_problems
from perseus.results.fleets.attainment import attained
from perseus.results.fleets.break_even import Cost, costs
from perseus.results.fleets.operating_points import OperatingPoint, operating_points
from perseus.results.fleets.plans import Plan, plans
from perseus.results.paired import paired_peaks
from perseus.results.records import PeakRecord, Record, Row, plain_record
from perseus.results.repeats import (
    Alone,
    Dedicated,
    Quantity,
    RepeatedPeak,
    dedicated_peaks,
    each_alone,
    group,
    key,
    sharing_ratio,
)
from perseus.study.experiments import run_of
from perseus.study.tasks.tables import TablesTask

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class StudyResults:
    """Results of a study, from which Perseus makes the tables.

    `records` has the content of record.json of each cell. `exports` has the content of check.json
    of each exported model, by the name of the model.
    """

    task: TablesTask
    records: tuple[Row, ...]
    ceilings: tuple[Ceiling, ...] = ()
    exports: Mapping[str, Row] = field(default_factory=dict)

    @classmethod
    def read(
        cls,
        task: TablesTask,
        cells: Sequence[Path],
        ceilings: Sequence[Path],
        exports: Sequence[Path] = (),
    ) -> Self:
        """Read the results of a study.

        `cells` has the folders with the raw results, `ceilings` the files of client ceilings, and
        `exports` the files check.json of the exported models. The folder of each check.json has the
        name of the model.
        """
        return cls(
            task,
            tuple(map(plain_record, cells)),
            tuple(map(Ceiling.read, ceilings)),
            {path.parent.name: json.loads(path.read_text()) for path in exports},
        )

    def of_kind(self, wanted: type[R]) -> list[R]:
        """Return the records of all cells of the kind `wanted.kind`, as objects of the class
        `wanted`.

        The result includes the cells of more special kinds. For example, each experiment `frontier`
        is also an experiment `peak`.
        """
        run = run_of(wanted.kind)
        return [
            wanted.model_validate(record)
            for record in self.records
            if issubclass(run_of(record["cell"]["run"]["kind"]), run)
        ]

    @cached_property
    def searches(self) -> list[PeakRecord]:
        return self.of_kind(PeakRecord)

    @cached_property
    def certified_windows(self) -> dict[Path, list[Row]]:
        """For each search, the windows that describe the server at the certified rate, by the
        folder of the raw results (see `windows.certified`)."""
        return windows.certified(self.searches)

    @cached_property
    def peaks(self) -> dict[tuple[str, str], RepeatedPeak]:
        """Peak of each load line, by the names of scenario and load line (see `repeats.key`)."""
        return paired_peaks(group(self.searches, self.task.seed), self.task.seed)

    @cached_property
    def _sharing_ratios(self) -> dict[tuple[str, str], Quantity]:
        return {of: sharing_ratio(peak, self.alone(peak)) for of, peak in self.peaks.items()}

    def sharing_ratio(self, peak: RepeatedPeak) -> Quantity:
        return self._sharing_ratios[key(peak.task)]

    @cached_property
    def operating_points(self) -> tuple[OperatingPoint, ...]:
        return operating_points(list(self.peaks.values()), self.task.prices)

    @cached_property
    def plans(self) -> tuple[Plan, ...]:
        """Planned fleets for the demand; empty without a demand."""
        return plans(self.operating_points, self.task.demand)

    @cached_property
    def attainments(self) -> tuple[dict[str, float], ...]:
        """For each plan in `plans`, the share of the requests within the SLA, by model."""
        return tuple(map(attained, self.plans))

    @cached_property
    def costs_over_demand(self) -> tuple[Cost, ...]:
        return tuple(costs(self.operating_points, self.task.demand))

    @cached_property
    def ceiling_problems(self) -> dict[Requests, str]:
        return ceiling_problems(self.ceilings, list(self.peaks.values()))

    @cached_property
    def _dedicated(self) -> Dedicated:
        return dedicated_peaks(list(self.peaks.values()))

    def alone(self, peak: RepeatedPeak) -> Alone:
        """Return the dedicated peak of each tenant of a load line, measured on the same server with
        the same preset; None if not measured."""
        return each_alone(peak, self._dedicated)
