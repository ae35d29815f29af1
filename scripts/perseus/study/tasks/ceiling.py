"""Task: measure the client's ceiling beside one server."""

from __future__ import annotations

from perseus.study.base import Part
from perseus.study.tasks.measure import MeasuredArrivals, MeasuredClient
from perseus.study.traces import TraceOf


class RequestOfModel(Part):
    """Requests with a number of images of a model.

    How late they may be sent follows from `sla_ms`, the model's SLA in coarse steps, so that a
    small change of it asks for no new ceiling.
    """

    model: str
    images: int
    sla_ms: float


class CeilingTask(Part):
    """Settings of a ceiling besides the request shapes.

    It is measured on a server of Perseus, for every launcher and runtime. `cores` are the
    server's, None beside a remote server: its client has `client_cores`, the null model the
    others. `trace` is what arrivals of a trace are read from.
    """

    server: str
    cores: int | None
    client_cores: int | None
    arrivals: MeasuredArrivals
    trace: TraceOf | None
    client: MeasuredClient
    seed: int
    requests: tuple[RequestOfModel, ...]
