"""Check the grids of a configuration. A grid must have a limited number of settings, and Perseus
must be able to measure at least one setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from perseus.host import powercap
from perseus.host.cpu_instructions import has_bf16
from perseus.study.checks.scenarios import cell_name, cell_name_problems, tenant_problems
from perseus.study.checks.servers import device_problems
from perseus.study.definition import Definition
from perseus.study.experiments import peak
from perseus.study.grid import Grid
from perseus.study.launchers import LAUNCHERS
from perseus.study.model import Model
from perseus.study.problems import Place, Problems, path
from perseus.study.scenario import ScenarioSettings
from perseus.study.server import Server
from perseus.study.variants import Variant, variants

MAX_SETTINGS: Final = 300


def problems(study: Definition, most_cores: int | None) -> Problems:
    """Yield the problems of all grids.

    `most_cores` is the largest number of cores that a server on this machine can have, or None if
    unknown.
    """
    servers = {server.name: server for server in study.servers}
    models = {model.name: model for model in study.models}
    for i, item in enumerate(study.scenarios):
        known = {*item.servers} <= servers.keys() and {
            t.model for t in item.tenants
        } <= models.keys()
        if item.grid is not None and known:
            here = [servers[name] for name in item.servers]
            at: Place = ("scenarios", i, "grid")
            yield from _grid_problems(at, item, item.grid, here, models, most_cores)


def _grid_problems(
    at: Place,
    item: ScenarioSettings,
    grid: Grid,
    servers: Sequence[Server],
    models: Mapping[str, Model],
    most_cores: int | None,
) -> Problems:
    count = grid.size * len(servers)
    if not grid.vary.lists:
        yield (*at, "vary"), "names no key to vary (add a key, such as `instances: [1, 2]`)"
        return
    if count > MAX_SETTINGS:
        fewer = "" if grid.design == "one_at_a_time" else "`design: one_at_a_time`, or "
        yield at, f"{count} settings exceed the limit of {MAX_SETTINGS} (use {fewer}fewer values)"
        return
    for server in servers:
        if server.price is None:
            yield (
                at,
                f"a grid recommends the cheapest setting, but server {server.name!r} has no price"
                " (give the server a `price:`)",
            )
        if grid.vary.cores and LAUNCHERS[server.launcher].elsewhere:
            yield (
                (*at, "vary", "cores"),
                f"server {server.name!r} is remote, so its cores cannot vary (remove `cores:`)",
            )
        if grid.at_most.joules_per_inference is not None and not _tells_energy(server):
            yield (
                (*at, "at_most", "joules_per_inference"),
                f"Perseus cannot measure the energy of server {server.name!r}: the server has no"
                f" GPU, and {_why_no_energy(server)} (remove this key)",
            )
    made = list(variants(item, grid, servers, models))
    reasons = [why_not(variant, models, most_cores) for variant in made]
    if all(reasons):
        yield at, f"no setting of this grid can be measured: {'; '.join(dict.fromkeys(reasons))}"
    names = [name for each in made for name in _cell_names(each)]
    yield from cell_name_problems(at, names, "vary fewer keys, or shorten names")


def _tells_energy(server: Server) -> bool:
    here = not LAUNCHERS[server.launcher].elsewhere
    return server.device == "gpu" or (here and powercap.is_readable())


def _why_no_energy(server: Server) -> str:
    if LAUNCHERS[server.launcher].elsewhere:
        return "is remote"
    return "the user of Perseus cannot read the energy counters in /sys/class/powercap"


def why_not(variant: Variant, models: Mapping[str, Model], most_cores: int | None) -> str:
    """Return the first reason why Perseus cannot measure a variant: a scenario with one setting of
    its grid. The result is empty if Perseus can measure the variant."""
    return next(_reasons(variant, models, most_cores), "")


def _reasons(
    variant: Variant, models: Mapping[str, Model], most_cores: int | None
) -> Iterator[str]:
    server, tenants = variant.server, variant.scenario.tenants
    here = not LAUNCHERS[server.launcher].elsewhere
    if here and "cores" in variant.setting and most_cores is not None and server.cores > most_cores:
        yield (
            f"cores: on this machine, a server can have at most {most_cores} cores, since the"
            " client needs at least one core"
        )
    joins = all(tenant.dynamic_batching for tenant in tenants)
    if variant.setting.get("preferred_batch_sizes") and not joins:
        yield "preferred_batch_sizes: without dynamic batching, Triton forms no batches"
    precisions = {tenant.precision or models[tenant.model].precision for tenant in tenants}
    is_cpu_here = here and server.device == "cpu" and most_cores is not None
    if "precision" in variant.setting and "bf16" in precisions and is_cpu_here and not has_bf16():
        yield "precision: this CPU has no bf16 instructions, so the server would compute in fp32"
    found = list(device_problems((), server))
    for tenant in tenants:
        found += tenant_problems((), tenant, models, [server])
    for place, text in found:
        yield f"{path(place)}: {text}"


def _cell_names(variant: Variant) -> Iterator[str]:
    server, scenario = variant.server, variant.scenario
    for run in (run for experiment in scenario.experiments for run in experiment.runs()):
        yield cell_name(server.name, scenario.name, run.name)
    for tenant in scenario.tenants:
        alone = peak.Run.dedicated(scenario.preset)
        yield cell_name(server.name, tenant.name, alone.name)
