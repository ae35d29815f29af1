"""Make the table `fleet_models`: for each fleet and model, the capacity and the share of requests
that meet the SLA."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.results.fleets.columns import FLEET, fleet
from perseus.results.fleets.plans import SPOT, Plan
from perseus.results.records import Row
from perseus.results.schema import Schema, ascending, column
from perseus.results.study_results import StudyResults
from perseus.study.sla import Sla

DESCRIPTION = (
    "One row per fleet and per model that has a demand. The table is empty without a demand."
)
SCHEMA = Schema(
    [
        *FLEET,
        column("model", TEXT, "", "name of the model"),
        column("demand_rps", REAL, "requests/s",
            "demand for the model, in requests of one image", null=False),
        column("capacity_rps", REAL, "requests/s",
            "capacity of the fleet for the model: the sum of the lower limits of the capacities of"
            " its servers. Perseus plans the fleet such that a part of this capacity stays free"
            " (key demand.headroom).", null=False),
        column("servers", WHOLE, "servers",
            "number of servers of the fleet that serve the model", least=1),
        column("servers_on_demand", WHOLE, "servers",
            "number of servers of the fleet that serve the model and are not spot servers"),
        column("sla_share", REAL, "share",
            "share of the model's requests that must have a latency of at most `sla_ms`, such as"
            " 0.95",
               null=False),
        column("sla_ms", REAL, "ms",
            "latency limit of the model's SLA", null=False),
        column("attained", REAL, "share",
            "share of the model's requests that have a latency of at most `sla_ms` in a simulation"
            " of the fleet (docs/explanation/fleets.md)"),
    ],
    key=("level", "strategy", "model"),
    holds=[
        ascending("demand_rps", "capacity_rps"),
        ascending("servers_on_demand", "servers"),
    ],
)  # fmt: skip


def rows(results: StudyResults) -> Iterator[Row]:
    for plan, within in zip(results.plans, results.attainments, strict=True):
        for model in plan.models if plan.counts else ():
            sla = _sla(plan, model)
            yield {
                **fleet(results.task.study, plan),
                "model": model,
                "demand_rps": plan.level.rps[model],
                "capacity_rps": plan.capacity_rps(model),
                "servers": plan.servers_with(model),
                "servers_on_demand": plan.servers_with(model, but=SPOT),
                "sla_share": 1 - sla.allowed,
                "sla_ms": sla.latency_ms,
                "attained": within.get(model, np.nan),
            }


def _sla(plan: Plan, model: str) -> Sla:
    (_, offer), *_ = plan.by_model[model]
    tenants = offer.point.peak.task.tenants
    return next(tenant.sla for tenant in tenants if tenant.model == model)
