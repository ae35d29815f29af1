"""Check the section `demand`: its models and servers, the form of its rates, and its traces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perseus.study.checks.files import trace_problems
from perseus.study.definition import Definition
from perseus.study.demand import ModelDemand
from perseus.study.hints import meant_or_known
from perseus.study.problems import Place, Problems, duplicates

FORMS = "`rps:`, or `trace:`, or all of `low_rps:`, `typical_rps:` and `peak_rps:`"


def problems(study: Definition, folder: Path) -> Problems:
    if study.demand is None:
        return
    served = {tenant.model for item in study.scenarios for tenant in item.tenants}
    measured = [model.name for model in study.models if model.name in served]
    yield from duplicates("demand.models", [item.name for item in study.demand.models])
    for i, item in enumerate(study.demand.models):
        at: Place = ("demand", "models", i)
        yield from _unknown((*at, "name"), item.name, measured, "a model of a scenario")
        yield from _rate_problems(at, item, study.demand.interval_s, folder)
    used = list(dict.fromkeys(name for item in study.scenarios for name in item.servers))
    for i, name in enumerate(study.demand.servers or ()):
        yield from _unknown(("demand", "servers", i), name, used, "a server of a scenario")
    wanted = study.demand.servers or tuple(used)
    for server in study.servers:
        if server.price is None and server.name in wanted:
            yield (
                ("demand", "servers"),
                f"{server.name!r} has no price, but Perseus plans fleets by their cost (give the"
                " server a `price:`, or name only servers with a price)",
            )
    if not any(rate > 0 for item in study.demand.models for rate in item.levels_rps or (1.0,)):
        yield ("demand", "models"), "no model has a rate above 0 (give at least one model a rate)"


def _unknown(at: Place, name: str, known: Sequence[str], what: str) -> Problems:
    if name not in known:
        yield at, f"{name!r} is not {what}{meant_or_known(name, known)}"


def _rate_problems(at: Place, item: ModelDemand, interval_s: float, folder: Path) -> Problems:
    three = item.low_rps, item.typical_rps, item.peak_rps
    given = [item.rps is not None, any(rate is not None for rate in three), item.trace is not None]
    if sum(given) != 1:
        yield at, f"has {'no rate' if not any(given) else 'several rates'} (write {FORMS})"
    elif given[1] and None in three:
        yield at, "`low_rps:`, `typical_rps:` or `peak_rps:` is missing (write all three)"
    elif item.levels_rps and list(item.levels_rps) != sorted(item.levels_rps):
        yield at, "must have `low_rps` <= `typical_rps` <= `peak_rps`"
    if item.trace is not None:
        yield from trace_problems((*at, "trace"), item.trace, folder, interval_s=interval_s)
