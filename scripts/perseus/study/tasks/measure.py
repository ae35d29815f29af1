"""The task of measuring one cell."""

from __future__ import annotations

from typing import Annotated

from pydantic import SerializeAsAny

from perseus.study.base import Part
from perseus.study.experiments import RunOfKind
from perseus.study.experiments.base import ExperimentRun
from perseus.study.presets import SearchSettings
from perseus.study.remote import Remote
from perseus.study.sla import Sla


class MeasuredArrivals(Part):
    """When requests come; `cv` is the coefficient of variation of gamma's gaps."""

    process: str
    cv: float


class MeasuredClient(Part):
    """How requests reach the server; `processes` of each tenant, None by the cores there are."""

    protocol: str
    shared_memory: bool
    processes: int | None


class MeasuredServer(Part):
    """What serves. `gpus` are those of this host, none for a CPU or a remote server."""

    name: str
    device: str
    launcher: str
    image: str | None
    runtime: str
    cores: int
    gpus: tuple[int, ...]
    remote: Remote | None


class MeasuredTenant(Part):
    """A tenant as the client sees it."""

    name: str
    model: str
    max_batch_size: int
    request_batch_size: int
    dynamic_batching: bool
    precision: str
    priority: int | None
    sla: Sla


class MeasureTask(Part):
    """One cell: scenario x experiment x repeat. `trace` is the file of a trace's arrivals."""

    study: str
    cell: str
    scenario: str
    repeat: int
    seed: int
    run: Annotated[SerializeAsAny[ExperimentRun], RunOfKind]
    server: MeasuredServer
    tenants: tuple[MeasuredTenant, ...]
    preset: str
    search: SearchSettings
    arrivals: MeasuredArrivals
    trace: str | None
    client: MeasuredClient

    @property
    def tenant_names(self) -> list[str]:
        return [tenant.name for tenant in self.tenants]

    @property
    def slas(self) -> list[Sla]:
        return [tenant.sla for tenant in self.tenants]
