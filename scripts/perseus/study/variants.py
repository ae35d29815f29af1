"""Make the variants of a scenario with a grid: copies of the scenario and of its servers, each with
the values of one setting of the grid.

A value that differs from the configured value becomes a suffix of the name of the server, tenant or
scenario, such as `cpu1~runtime-openvino` or `squeezenet1_1~instances-2`. If two grids contain the
same variant, it has the same names in both grids, so Perseus measures it only once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perseus.study.grid import NO_BATCHING, Grid
from perseus.study.model import Model
from perseus.study.scenario import ScenarioSettings
from perseus.study.server import Server
from perseus.study.setting import Setting, Value, describe, suffix
from perseus.study.tenant import DynamicBatching, Tenant

BATCHING = ("max_queue_delay_us", "preferred_batch_sizes")
MAX_LISTED = 5


@dataclass(frozen=True)
class Variant:
    """One setting of a grid, and copies of the scenario and the server with this setting.

    `why_not` says why Perseus cannot measure the variant, and is empty if Perseus can measure it.
    """

    setting: Setting
    server: Server
    scenario: ScenarioSettings
    why_not: str = ""


@dataclass(frozen=True)
class ScenarioGrid:
    """A scenario of the configuration, its grid, and its variants: one for each setting and server.
    The first variant has the first value of each key."""

    scenario: ScenarioSettings
    grid: Grid
    variants: tuple[Variant, ...]

    def messages(self) -> Iterator[str]:
        """Yield lines of text for the terminal: how many settings Perseus can measure, which
        settings it leaves out, and why."""
        left_out: dict[str, list[str]] = {}
        for variant in self.variants:
            if variant.why_not:
                left_out.setdefault(variant.why_not, []).append(describe(variant.setting))
        measured = sum(not variant.why_not for variant in self.variants)
        yield (
            f"Grid of {self.scenario.name!r}: {measured} of {len(self.variants)} settings can be"
            " measured."
        )
        for why, settings in left_out.items():
            more = f" and {len(settings) - MAX_LISTED} more" if len(settings) > MAX_LISTED else ""
            yield f"  left out: {'; '.join(settings[:MAX_LISTED])}{more} ({why})"


def variants(
    item: ScenarioSettings, grid: Grid, servers: Sequence[Server], models: Mapping[str, Model]
) -> Iterator[Variant]:
    """Yield one variant for each server and each setting, also if Perseus cannot measure it. The
    attribute `why_not` of all variants is still empty."""
    for server in servers:
        for setting in grid.settings():
            made = _variant(item, setting, server, models)
            told = {"server": server.name, **setting} if len(servers) > 1 else setting
            yield Variant(told, *made)


def _variant(
    item: ScenarioSettings, setting: Setting, server: Server, models: Mapping[str, Model]
) -> tuple[Server, ScenarioSettings]:
    machine = _changed(setting, {"runtime": server.runtime, "cores": server.cores})
    served = server.model_copy(update={**machine, "name": server.name + suffix(machine)})
    own = [_own(tenant, models[tenant.model], served) for tenant in item.tenants]
    tenants = tuple(map(_tenant, item.tenants, own, [setting] * len(own)))
    anywhere = {
        key: setting[key] for key in setting if any(key in _changed(setting, o) for o in own)
    }
    names = {old.name: new.name for old, new in zip(item.tenants, tenants, strict=True)}
    scenario = item.model_copy(
        update={
            "name": item.name + suffix(anywhere),
            "servers": (served.name,),
            "tenants": tenants,
            "experiments": tuple(each.renamed(names) for each in item.experiments),
            "grid": None,
        }
    )
    return served, scenario


def _own(tenant: Tenant, model: Model, server: Server) -> Setting:
    """Return the tenant's configured values of the keys that a grid may vary."""
    batching = tenant.dynamic_batching
    return {
        "precision": tenant.precision or model.precision,
        "instances": tenant.instances,
        "max_batch_size": tenant.max_batch_size,
        "max_queue_delay_us": batching.max_queue_delay_us if batching else NO_BATCHING,
        "preferred_batch_sizes": batching.preferred_batch_sizes if batching else (),
        "intra_op_threads": tenant.intra_op_threads or server.cores,
    }


def _changed(setting: Setting, own: Setting) -> dict[str, Value]:
    return {key: value for key, value in setting.items() if own.get(key, value) != value}


def _tenant(tenant: Tenant, own: Setting, setting: Setting) -> Tenant:
    changed = _changed(setting, own)
    fields: dict[str, object] = {key: changed[key] for key in changed if key not in BATCHING}
    if any(key in changed for key in BATCHING):
        fields["dynamic_batching"] = _batching({**own, **setting})
    return tenant.model_copy(update={**fields, "name": tenant.name + suffix(changed)})


def _batching(setting: Setting) -> DynamicBatching | None:
    wanted = {key: setting[key] for key in BATCHING}
    if wanted["max_queue_delay_us"] == NO_BATCHING:
        return None
    return DynamicBatching.model_validate(wanted)
