"""Tasks (the parameters of jobs) that measure a cell, for tests."""

from __future__ import annotations

from typing import Any

from perseus.study.experiments.base import ExperimentRun
from perseus.study.experiments.peak import DEDICATED
from perseus.study.presets import PRESETS
from perseus.study.sla import Sla
from perseus.study.tasks.measure import (
    MeasuredArrivals,
    MeasuredClient,
    MeasuredServer,
    MeasuredTenant,
    MeasureTask,
)


def client(protocol: str = "grpc", shared_memory: bool = False) -> MeasuredClient:
    return MeasuredClient(protocol=protocol, shared_memory=shared_memory, processes=None)


def tenant(name: str, **changes: Any) -> MeasuredTenant:
    """Return a tenant whose requests have one image."""
    settled: dict[str, Any] = {
        "model": name,
        "max_batch_size": 1,
        "request_batch_size": 1,
        "dynamic_batching": False,
        "precision": "fp32",
        "priority": None,
        "preprocessing": None,
        "sla": Sla(latency_ms=50.0),
    }
    return MeasuredTenant(name=name, **(settled | changes))


def server(**changes: Any) -> MeasuredServer:
    """Return a server with one core of this host and without a container."""
    settled: dict[str, Any] = {
        "name": "cpu1",
        "device": "cpu",
        "launcher": "embedded",
        "image": None,
        "runtime": "onnxruntime",
        "cores": 1,
        "gpus": (),
        "remote": None,
    }
    return MeasuredServer(**(settled | changes))


def measure_task(
    *tenants: MeasuredTenant, run: ExperimentRun = DEDICATED, **changes: Any
) -> MeasureTask:
    """Return the task of a cell with these tenants and the preset `smoke`."""
    scenario = "-".join(each.name for each in tenants)
    settled: dict[str, Any] = {
        "study": "test",
        "cell": f"{scenario}.{run.name}.r1",
        "scenario": scenario,
        "repeat": 1,
        "seed": 0,
        "run": run,
        "server": server(),
        "tenants": tenants,
        "preset": "smoke",
        "search": PRESETS["smoke"].settings,
        "arrivals": MeasuredArrivals(process="poisson", cv=1.0),
        "trace": None,
        "client": client(),
    }
    return MeasureTask(**(settled | changes))
