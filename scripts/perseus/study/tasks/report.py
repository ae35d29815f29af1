"""Task: write the report of a study."""

from __future__ import annotations

from perseus.study.base import Part, Text
from perseus.study.demand import Demand
from perseus.study.measurement import Measurement
from perseus.study.model import Model
from perseus.study.server import Server
from perseus.study.tenant import Tenant


class ReportedTenant(Tenant):
    """A tenant, or a variant of one with a name outside the configuration."""

    name: Text


class ReportedServer(Server):
    """A server, or a variant of one."""

    name: Text


class ReportTask(Part):
    """The configuration that the page shows, for scenarios only the used part.

    The records of cells only have what a measurement itself depends on; this task adds instances,
    batching, weights and images of the models. `traces` describe each file of recorded requests as
    read.
    """

    models: tuple[Model, ...] = ()
    tenants: tuple[ReportedTenant, ...] = ()
    servers: tuple[ReportedServer, ...] = ()
    measurement: Measurement = Measurement()
    demand: Demand | None = None
    traces: tuple[str, ...] = ()
