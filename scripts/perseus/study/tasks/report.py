"""Define the task of the job that writes the report of a study."""

from __future__ import annotations

from perseus.study.base import Part, Text
from perseus.study.demand import Demand
from perseus.study.measurement import Measurement
from perseus.study.model import Model
from perseus.study.server import Server
from perseus.study.tenant import Tenant


class ReportedTenant(Tenant):
    """A tenant of a scenario. Its name may end with the suffix for a setting of a grid, such as
    `~instances-2`. A configuration does not allow such names."""

    name: Text


class ReportedServer(Server):
    """A server of a scenario. Its name may end with the suffix for a setting of a grid, such as
    `~runtime-openvino`. A configuration does not allow such names."""

    name: Text


class ReportTask(Part):
    """The parts of the configuration that the report shows.

    The records of cells do not contain all of these settings: for example, they lack the instances,
    batching, weights and images of the models. `traces` contains one text for each trace, which
    says how Perseus read the trace.
    """

    models: tuple[Model, ...] = ()
    tenants: tuple[ReportedTenant, ...] = ()
    servers: tuple[ReportedServer, ...] = ()
    measurement: Measurement = Measurement()
    demand: Demand | None = None
    traces: tuple[str, ...] = ()
