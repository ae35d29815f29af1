"""Simulate a fleet under its demand, and compute the share of requests that meet their SLA
(docs/explanation/fleets.md).

In the simulation, each server is a first-come first-served queue for all its tenants. The service
time of a request is 1 / (saturation throughput of its tenant while no other tenant has load). The
simulation does not use the peaks from the searches, and is therefore an independent check of the
plan. The loads of a plan refer to the speed that the host had in the cells of dedicated servers.
The module therefore converts the service times to this speed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from perseus.peak.stats import Floats
from perseus.peak.virtual_queue import LongRun, VirtualQueue
from perseus.results.fleets.operating_points import OperatingPoint
from perseus.results.fleets.plans import Plan
from perseus.traffic.arrivals import Arrivals

REQUESTS = 50_000
"""Number of simulated requests per server. If 5 % of the requests are late, the error of this share
is about 0.2 percentage points."""


def attained(plan: Plan) -> dict[str, float]:
    """For each model, return the share of its requests that meet its SLA in a simulation of the
    planned fleet.

    The share is NaN if the service times of a server are unknown. The simulation assumes that a
    Poisson process generates the requests, and that each request goes to a random server. The
    arrivals at each server are then a Poisson process, too.
    """
    late, asked = dict.fromkeys(plan.models, 0.0), dict.fromkeys(plan.models, 0.0)
    for count, offer in plan.chosen:
        loads = {model: plan.load_rps(offer, model) for model in offer.point.models}
        for model, share in late_shares(offer.point, loads).items():
            late[model] += count * loads[model] * share
            asked[model] += count * loads[model]
    return {model: 1 - late[model] / asked[model] for model in plan.models if asked[model]}


def late_shares(point: OperatingPoint, loads_rps: Mapping[str, float]) -> dict[str, float]:
    """For each model on one server, return the share of late requests in a simulated queue.

    `loads_rps` has the load of each model in images/s. The share is NaN if the service time or the
    latency without load of a tenant is unknown.
    """
    peak = point.peak
    tenants = [peak.task.tenants[i] for i in peak.loaded]
    speeds = np.array([peak.speeds_rps[tenant.name] for tenant in tenants]) / point.speed_changes
    unloaded_ms = point.speed_changes * [
        np.median([record.unloaded_p50_ms.get(tenant.name, np.nan) for record in peak.records])
        for tenant in tenants
    ]
    rates = _rates_rps(point, loads_rps)
    spare_s = [
        (tenant.sla.latency_ms - float(ms)) / 1000
        for tenant, ms in zip(tenants, unloaded_ms, strict=True)
    ]
    total = float(rates.sum())
    if not (np.isfinite(speeds).all() and np.isfinite(spare_s).all() and total > 0):
        return {model: float("nan") for model in point.models}
    queue = VirtualQueue(tuple(np.array([1 / speed]) for speed in speeds), tuple(spare_s))
    run = LongRun.of(queue, tuple(rates / total), Arrivals(), REQUESTS)
    late = dict.fromkeys(point.models, 0.0)
    for i, tenant in enumerate(tenants):
        mine = rates[[each.model == tenant.model for each in tenants]].sum()
        if rates[i] > 0:
            late[tenant.model] += rates[i] / mine * run.late_share(i, total)
    return late


def _rates_rps(point: OperatingPoint, loads_rps: Mapping[str, float]) -> Floats:
    """For each tenant with load, return its rate in requests/s, given the load of each model in
    images/s.

    If several tenants of a server have the same model, the function divides the load of the model
    among these tenants in proportion to their inferences/s at the peak.
    """
    peak = point.peak
    images = peak.images_per_request[peak.loaded]
    at_limit = peak.rates_rps[peak.loaded] * images / point.limit_changes
    models = np.array([peak.task.tenants[i].model for i in peak.loaded])
    of_model = [at_limit[models == model].sum() for model in models]
    loads = np.array([loads_rps.get(model, 0.0) for model in models])
    rates: Floats = loads * at_limit / of_model / images
    return rates
