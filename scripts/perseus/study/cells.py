"""What a study consists of: scenarios, each on one server, and their cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from perseus.study.definition import Definition
from perseus.study.experiments.base import ExperimentRun
from perseus.study.experiments.peak import DEDICATED
from perseus.study.model import Model
from perseus.study.presets import PRESETS, Preset
from perseus.study.server import Server
from perseus.study.tasks.tables import Price
from perseus.study.tenant import Tenant


@dataclass(frozen=True)
class Scenario:
    """One server and its tenants: exactly one Triton model repository. One tenant: dedicated."""

    name: str
    server: Server
    tenants: tuple[Tenant, ...]
    runs: tuple[ExperimentRun, ...]

    @property
    def id(self) -> str:
        return f"{self.server.name}.{self.name}"

    def tenant(self, name: str) -> Tenant:
        return next(tenant for tenant in self.tenants if tenant.name == name)


@dataclass(frozen=True)
class Cell:
    """One unit of measurement: scenario x experiment x repeat."""

    scenario: Scenario
    run: ExperimentRun
    repeat: int

    @property
    def id(self) -> str:
        return f"{self.scenario.id}.{self.run.name}.r{self.repeat}"


@dataclass(frozen=True)
class Study:
    """A definition with what follows from it.

    `images` are the files of each model's images, none for random ones; `prices` are by server.
    Scenarios are by id, dedicated ones first.
    """

    definition: Definition
    images: Mapping[str, tuple[str, ...]]
    prices: Mapping[str, Price]

    @property
    def name(self) -> str:
        return self.definition.study

    @property
    def preset(self) -> Preset:
        return PRESETS[self.definition.measurement.preset]

    @property
    def repeats(self) -> int:
        return self.definition.measurement.repeats or self.preset.repeats

    @cached_property
    def models(self) -> Mapping[str, Model]:
        return {model.name: model for model in self.definition.models}

    @cached_property
    def servers(self) -> Mapping[str, Server]:
        """Those that scenarios use."""
        return {each.server.name: each.server for each in self.scenarios.values()}

    @cached_property
    def scenarios(self) -> Mapping[str, Scenario]:
        return {scenario.id: scenario for scenario in _scenarios(self.definition)}

    @cached_property
    def cells(self) -> Mapping[str, Cell]:
        return {
            cell.id: cell
            for scenario in self.scenarios.values()
            for run in scenario.runs
            for cell in (Cell(scenario, run, r) for r in range(1, self.repeats + 1))
        }

    @property
    def kinds(self) -> set[str]:
        """The kinds of its experiments."""
        return {run.kind for scenario in self.scenarios.values() for run in scenario.runs}

    def dedicated_cells(self, of: Cell) -> tuple[Cell, ...]:
        """The cells that measure a tenant of `of` alone on its server, where it needs them."""
        if not of.run.needs_dedicated_peaks:
            return ()
        server = of.scenario.server.name
        return tuple(
            Cell(self.scenarios[f"{server}.{tenant.name}"], DEDICATED, repeat)
            for tenant in of.scenario.tenants
            for repeat in range(1, self.repeats + 1)
        )

    def earlier_cells(self, of: Cell) -> tuple[Cell, ...]:
        """The cells of its scenario whose results decide on what `of` measures."""
        return tuple(
            self.cells[f"{of.scenario.id}.{name}.r{repeat}"]
            for name in of.run.needs_runs
            for repeat in range(1, self.repeats + 1)
        )


def _scenarios(definition: Definition) -> Iterator[Scenario]:
    """The scenarios on each of their servers, and before them the dedicated ones that they need."""
    servers = {server.name: server for server in definition.servers}
    dedicated: dict[tuple[str, str], Scenario] = {}
    shared: list[Scenario] = []
    for item in definition.scenarios:
        runs = tuple(run for experiment in item.experiments for run in experiment.runs())
        for server in (servers[name] for name in item.servers):
            for tenant in item.tenants:
                alone = Scenario(tenant.name, server, (tenant,), (DEDICATED,))
                dedicated.setdefault((server.name, tenant.name), alone)
            if len(item.tenants) > 1:
                shared.append(Scenario(item.name, server, item.tenants, runs))
            elif runs:
                key = (server.name, item.tenants[0].name)
                dedicated[key] = replace(dedicated[key], runs=(DEDICATED, *runs))
    yield from dedicated.values()
    yield from shared
