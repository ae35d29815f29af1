"""Define the task: write the report of a study."""

from __future__ import annotations

from perseus.study.base import Part, Text
from perseus.study.demand import Demand
from perseus.study.measurement import Measurement
from perseus.study.model import Model
from perseus.study.server import Server
from perseus.study.tenant import Tenant


class ReportedTenant(Tenant):
    """A tenant, or a variant of a tenant, whose name is not in the configuration."""

    name: Text


class ReportedServer(Server):
    """A server, or a variant of a server in a grid."""

    name: Text


class ReportTask(Part):
    """The parts of the configuration that the report shows.

    The records of cells have only settings that a measurement depends on. This task adds the
    instances, the batching, the weights and the images of the models. `traces` has a message for
    each trace, which says how the trace was interpreted.
    """

    models: tuple[Model, ...] = ()
    tenants: tuple[ReportedTenant, ...] = ()
    servers: tuple[ReportedServer, ...] = ()
    measurement: Measurement = Measurement()
    demand: Demand | None = None
    traces: tuple[str, ...] = ()
