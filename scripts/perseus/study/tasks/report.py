"""The task of writing the report of a study."""

from __future__ import annotations

from perseus.study.base import Part
from perseus.study.demand import Demand
from perseus.study.measurement import Measurement
from perseus.study.model import Model
from perseus.study.server import Server
from perseus.study.tenant import Tenant


class ReportTask(Part):
    """What the page tells of the configuration, as a user wrote it: what scenarios use of it.

    The records of cells only have what a measurement depends on itself; instances, batching,
    weights and images are what its server loads.
    """

    models: tuple[Model, ...] = ()
    tenants: tuple[Tenant, ...] = ()
    servers: tuple[Server, ...] = ()
    measurement: Measurement = Measurement()
    demand: Demand | None = None
