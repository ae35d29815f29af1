"""Task: measure the client's ceiling beside one server."""

from __future__ import annotations

from perseus.study.base import Part
from perseus.study.tasks.measure import MeasuredArrivals, MeasuredClient
from perseus.study.traces import TraceOf


class RequestOfModel(Part):
    """Requests with a number of images of a model.

    The allowed send lag follows from `sla_ms`, the model's SLA in coarse steps, so that a small
    change of it needs no new ceiling.
    """

    model: str
    images: int
    sla_ms: float


class CeilingTask(Part):
    """Settings of a ceiling besides the request shapes.

    The ceiling is measured on a local server, for every launcher and runtime. `cores` is the
    server's number of cores, None for a remote server: its client has `client_cores`, and the null
    model the others. `trace` is the source of a trace's arrivals.
    """

    server: str
    cores: int | None
    client_cores: int | None
    arrivals: MeasuredArrivals
    trace: TraceOf | None
    client: MeasuredClient
    seed: int
    requests: tuple[RequestOfModel, ...]
