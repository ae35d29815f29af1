"""Define the task: write the report of a study."""

from __future__ import annotations

from perseus.study.base import Part, Text
from perseus.study.demand import Demand
from perseus.study.measurement import Measurement
from perseus.study.model import Model
from perseus.study.server import Server
from perseus.study.tenant import Tenant


class ReportedTenant(Tenant):
    """A tenant of a scenario. If the tenant belongs to a setting of a grid, its name has a suffix
    that names in a configuration cannot have."""

    name: Text


class ReportedServer(Server):
    """A server of a scenario. If the server belongs to a setting of a grid, its name has a suffix
    that names in a configuration cannot have."""

    name: Text


class ReportTask(Part):
    """The parts of the configuration that the report shows.

    The report needs more settings than the records of cells have, for example the instances,
    batching, weights and images of the models. `traces` has one message for each trace: how Perseus
    interpreted the trace.
    """

    models: tuple[Model, ...] = ()
    tenants: tuple[ReportedTenant, ...] = ()
    servers: tuple[ReportedServer, ...] = ()
    measurement: Measurement = Measurement()
    demand: Demand | None = None
    traces: tuple[str, ...] = ()
