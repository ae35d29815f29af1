"""Expand a study into scenarios (one for each server of each configured scenario), and into cells,
the smallest units that Perseus measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from perseus.study.definition import Definition
from perseus.study.demand import rate_shares
from perseus.study.experiments.base import ExperimentRun
from perseus.study.experiments.peak import Run as PeakRun
from perseus.study.image_files import LabelledImage
from perseus.study.model import Model, Precision
from perseus.study.presets import PRESETS
from perseus.study.pricing import price_messages
from perseus.study.recorded import read_trace
from perseus.study.scenario import ScenarioSettings
from perseus.study.server import Server
from perseus.study.setting import configured, of_ceiling
from perseus.study.tasks.tables import Price
from perseus.study.tenant import Tenant
from perseus.study.traces import TraceSource
from perseus.study.triton_models import tenant_of
from perseus.study.variants import ScenarioGrid

MIXES_TO_PREDICT: Final = 5
"""Smallest number of mixes on one server for which Perseus draws the figure `predictions`. Perseus
predicts one of these mixes, and estimates the error of the prediction from the other four."""


@dataclass(frozen=True)
class Asked:
    """A run (what an experiment measures in one cell), and the preset of its measurement."""

    run: ExperimentRun
    preset: str


@dataclass(frozen=True)
class Scenario:
    """A server, the tenants that share it, and what Perseus measures on it (`asked`). A scenario
    with one tenant is a dedicated scenario."""

    name: str
    server: Server
    tenants: tuple[Tenant, ...]
    asked: tuple[Asked, ...]

    @property
    def id(self) -> str:
        return f"{self.server.name}.{self.name}"

    @property
    def runs(self) -> tuple[ExperimentRun, ...]:
        return tuple(each.run for each in self.asked)

    @property
    def is_survey(self) -> bool:
        """True if all runs of the scenario are surveys (short measurements for the table
        `catalogue`)."""
        return all(run.is_survey for run in self.runs)

    @property
    def copied_model(self) -> str | None:
        """The name of the model if all tenants of a shared scenario have the same model; otherwise
        None."""
        models = {tenant.model for tenant in self.tenants}
        return models.pop() if len(models) == 1 and len(self.tenants) > 1 else None

    def tenant(self, name: str) -> Tenant:
        """Return the tenant called `name`, or the tenant with a Triton model called `name`."""
        return next(tenant for tenant in self.tenants if tenant.name == tenant_of(name))


@dataclass(frozen=True)
class Cell:
    """The smallest unit of measurement: one repeat of one run of one scenario."""

    scenario: Scenario
    run: ExperimentRun
    preset: str
    repeat: int

    @property
    def id(self) -> str:
        return f"{self.repeated}.r{self.repeat}"

    @property
    def repeated(self) -> str:
        """Id of the cell without the repeat number. All repeats of a run have the same value."""
        return f"{self.scenario.id}.{self.run.name}"


@dataclass(frozen=True)
class Study:
    """A study: its configuration (`definition`), and the data that Perseus derives from it.

    `scenarios` contains the scenarios by id: first the dedicated scenarios, then the shared
    scenarios. If a configured scenario has a grid, `scenarios` contains one scenario for each
    setting that Perseus can measure, and `grids` contains the configured scenario. `images`
    contains the paths of the image files of each model; a model with random images has no paths.
    `labelled` contains the paths and the correct classes of each model's labelled images. `prices`
    contains the price of each server with the key `price`. `other_prices` contains each server's
    prices from its key `other_prices`. `demand_rps` contains, for each model, the low, typical and
    peak rate of the demand in images/s.
    """

    definition: Definition
    images: Mapping[str, tuple[str, ...]]
    labelled: Mapping[str, tuple[LabelledImage, ...]]
    prices: Mapping[str, Price]
    other_prices: Mapping[str, tuple[Price, ...]]
    demand_rps: Mapping[str, tuple[float, ...]]
    grids: tuple[ScenarioGrid, ...] = ()

    @property
    def name(self) -> str:
        return self.definition.study

    def repeats(self, preset: str) -> range:
        """Return the numbers of the repeats (1, 2, ...) of each load line with this preset."""
        chosen = self.definition.measurement.repeats or PRESETS[preset].repeats
        return range(1, chosen + 1)

    @cached_property
    def models(self) -> Mapping[str, Model]:
        return {model.name: model for model in self.definition.models}

    @cached_property
    def servers(self) -> Mapping[str, Server]:
        """Servers that at least one scenario uses."""
        return {each.server.name: each.server for each in self.scenarios.values()}

    @cached_property
    def scenarios(self) -> Mapping[str, Scenario]:
        return {scenario.id: scenario for scenario in _scenarios(self)}

    @cached_property
    def cells(self) -> Mapping[str, Cell]:
        cells = (
            Cell(scenario, each.run, each.preset, repeat)
            for scenario in self.scenarios.values()
            for each in scenario.asked
            for repeat in self.repeats(each.preset)
        )
        return {cell.id: cell for cell in cells}

    @cached_property
    def ceilings(self) -> Mapping[str, tuple[Server, ...]]:
        """The servers that share each measurement of a client ceiling, by the name of the
        measurement. There is no such measurement for a server on which all runs are surveys
        (experiment `catalogue`)."""
        found: dict[str, tuple[Server, ...]] = {}
        loaded = [of.server.name for of in self.scenarios.values() if not of.is_survey]
        for name in (name for name in self.servers if name in loaded):
            server = self.servers[name]
            found[of_ceiling(name)] = (*found.get(of_ceiling(name), ()), server)
        return found

    @property
    def kinds(self) -> set[str]:
        """Properties of the study. Perseus draws a figure only if the study has the properties that
        the figure needs.

        Each kind of experiment in the study, such as "soak", is a property. A study may also have
        these properties:

        - "grid": the study has a grid
        - "demand": the study has a demand
        - "prices": the study searches peaks, and a server has a price
        - "servers": the study has the property "prices", and several servers
        - "choice": the study has the property "prices", and several servers or a shared server
        - "preprocessing": at least one tenant has the key `preprocessing`
        - "mixes": the study measures at least `MIXES_TO_PREDICT` mixes on one server
        """
        scenarios = self.scenarios.values()
        shared = [each for each in scenarios if len(each.tenants) > 1]
        several = len({configured(name) for name in self.servers}) > 1
        mixes = Counter(
            each.server.name
            for each in shared
            for run in each.runs
            if isinstance(run, PeakRun) and run.line == "mix"
        )
        kinds = {run.kind for scenario in scenarios for run in scenario.runs}
        priced = "peak" in kinds and any(name in self.prices for name in self.servers)
        has = {
            "grid": bool(self.grids),
            "demand": self.definition.demand is not None,
            "servers": priced and several,
            "prices": priced,
            "choice": priced and (several or bool(shared)),
            "preprocessing": any(t.preprocessing for each in scenarios for t in each.tenants),
            "mixes": max(mixes.values(), default=0) >= MIXES_TO_PREDICT,
        }
        return kinds | {kind for kind, present in has.items() if present}

    def price_messages(self) -> Iterator[str]:
        """Yield the warnings for the terminal about prices that may be wrong."""
        names = (server.name for server in self.definition.servers if server.name in self.servers)
        prices = {name: (price,) for name, price in self.prices.items()}
        return price_messages(
            {name: (*prices.get(name, ()), *self.other_prices[name]) for name in names}
        )

    def urgency(self, model: str) -> int:
        """Return the Snakemake priority of the jobs that prepare and measure a model.

        Models without a survey (experiment `catalogue`) have the priority 0. Perseus measures
        surveyed models in the order of the configuration, so the first has the highest priority.
        """
        names = self._surveyed
        return len(names) - names.index(model) if model in names else 0

    @cached_property
    def _surveyed(self) -> list[str]:
        wanted = {t.model for of in self.scenarios.values() if of.is_survey for t in of.tenants}
        return [name for name in self.models if name in wanted]

    @cached_property
    def only_surveyed(self) -> set[str]:
        """Names of the models that no experiment other than `catalogue` measures."""
        others = {t.model for of in self.scenarios.values() if not of.is_survey for t in of.tenants}
        return set(self.models) - others

    def trace_messages(self, folder: Path) -> Iterator[str]:
        """Yield one line for the terminal for each trace, with what Perseus has read.

        The line states the format, the duration, the number of requests, and the column and unit of
        the times. The paths of trace files are relative to `folder`.
        """
        demand = self.definition.demand
        sources = [self.definition.measurement.arrivals.trace]
        sources += [each.trace for each in demand.models] if demand else []
        runs = [run for item in self.definition.scenarios for run in self.runs_of(item)]
        sources += [source for run in runs for source in run.traces]
        seen = list[TraceSource]()
        for source in sources:
            if source is not None and source not in seen:
                seen.append(source)
                yield read_trace(folder / source.file, source).message(str(source))

    def precision(self, of: Tenant) -> Precision:
        return of.precision or self.models[of.model].precision

    def runs_of(self, item: ScenarioSettings) -> Iterator[ExperimentRun]:
        shares = rate_shares(item.tenants, self.demand_rps)
        return (run for each in item.experiments for run in each.runs_for(shares))

    def dedicated_peaks(self, of: Cell) -> tuple[str, ...]:
        """Return the ids, without repeat numbers, of the dedicated peaks that the cell `of` needs.

        If `of` needs dedicated peaks, there is one id for each of its tenants; otherwise, the
        result is empty. The dedicated peaks have the preset of `of`, and therefore the same number
        of repeats.
        """
        if not of.run.needs_dedicated_peaks:
            return ()
        server, search = of.scenario.server.name, search_alone(self.definition, of.preset)
        return tuple(f"{server}.{tenant.name}.{search.run.name}" for tenant in of.scenario.tenants)

    def dedicated_cells(self, of: Cell) -> tuple[Cell, ...]:
        """Return all repeats of the cells that measure the dedicated peaks for the cell `of`."""
        return tuple(cell for peak in self.dedicated_peaks(of) for cell in self.repeats_of(peak))

    def repeats_of(self, repeated: str) -> tuple[Cell, ...]:
        """Return the cells of all repeats of one run. `repeated` is the id of such a cell without
        the repeat number."""
        preset = self.cells[f"{repeated}.r1"].preset
        return tuple(self.cells[f"{repeated}.r{repeat}"] for repeat in self.repeats(preset))

    def earlier_cells(self, of: Cell) -> tuple[Cell, ...]:
        """Return the cells that Perseus must measure before the cell `of`.

        For a mix of a frontier, these are the cells of the earlier mixes: from the results of the
        earlier mixes, Perseus chooses the mix or predicts its peak.
        """
        return tuple(
            self.cells[f"{of.scenario.id}.{name}.r{repeat}"]
            for name in of.run.needs_runs
            for repeat in self.repeats(of.preset)
        )

    def copies_cells(self, of: Cell) -> tuple[Cell, ...]:
        """Return the cells whose results Perseus uses to predict the peak of the cell `of`.

        The returned cells have the server and the preset of the cell `of`. In each returned cell,
        several copies of one model of the cell `of` share the server. The result is empty if the
        configuration does not allow a prediction for the cell `of`.
        """
        if not of.run.needs_copies:
            return ()
        models = {tenant.model for tenant in of.scenario.tenants}
        return tuple(
            cell
            for scenario in self.scenarios.values()
            if scenario.server == of.scenario.server and scenario.copied_model in models
            for each in scenario.asked
            if each.preset == of.preset and _is_measured_mix(each.run)
            for cell in self.repeats_of(f"{scenario.id}.{each.run.name}")
        )

    def is_served(self, tenant: Tenant) -> bool:
        """Return whether the server already has the model of the tenant (key `served_model`)."""
        return self.models[tenant.model].is_served

    def deployed(self, scenario: Scenario) -> list[Tenant]:
        """Return the tenants whose models Perseus loads into the server of the scenario. The server
        already has the models of all other tenants (key `served_model`)."""
        return [tenant for tenant in scenario.tenants if not self.is_served(tenant)]


def _scenarios(study: Study) -> Iterator[Scenario]:
    """Yield one scenario for each configured scenario and server: first all dedicated scenarios,
    then the shared scenarios."""
    definition = study.definition
    servers = {server.name: server for server in definition.servers}
    dedicated: dict[tuple[str, str], Scenario] = {}
    shared: list[Scenario] = []
    for item in definition.scenarios:
        preset = item.preset or definition.measurement.preset
        alone = search_alone(definition, preset)
        asked = tuple(Asked(run, preset) for run in study.runs_of(item))
        of_scenario = (alone, *asked) if len(item.tenants) == 1 else (alone,)
        if not item.searches_dedicated_peaks:
            of_scenario = asked
        for server in (servers[name] for name in item.servers):
            for tenant in item.tenants:
                key = (server.name, tenant.name)
                known = dedicated.get(key, Scenario(tenant.name, server, (tenant,), ()))
                new = (each for each in of_scenario if each not in known.asked)
                dedicated[key] = replace(known, asked=(*known.asked, *new))
            if len(item.tenants) > 1:
                shared.append(Scenario(item.name, server, item.tenants, asked))
    yield from dedicated.values()
    yield from shared


def _is_measured_mix(run: ExperimentRun) -> bool:
    """Return whether the run is a mix that Perseus always measures and never predicts."""
    return isinstance(run, PeakRun) and run.line == "mix" and not run.needs_copies


def search_alone(definition: Definition, preset: str) -> Asked:
    """Return the search for the peak of a tenant alone on a server, with the preset `preset`.

    If the study has another preset, the name of the search contains `preset`.
    """
    own = None if preset == definition.measurement.preset else preset
    return Asked(PeakRun.dedicated(own), preset)
