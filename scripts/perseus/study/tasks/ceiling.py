"""Define the task: measure the client ceiling beside one server."""

from __future__ import annotations

from perseus.study.base import Part
from perseus.study.tasks.measure import MeasuredArrivals, MeasuredClient
from perseus.study.traces import TraceOf


class RequestOfModel(Part):
    """Requests to a model, each with `images` images.

    `sla_ms` is the latency of the SLA of the model, rounded down to 50, 100, 200, 500, ... ms, so
    that a small change of the SLA does not repeat the measurement. The allowed send lag follows
    from `sla_ms`.
    """

    model: str
    images: int
    sla_ms: float


class CeilingTask(Part):
    """Settings of the measurement of a client ceiling. The shapes of the requests are in files.

    For every launcher and runtime, Perseus measures the ceiling with a local server and a null
    model, which does no work. `cores` is the number of cores of the server of the study, or None if
    it is remote. For a remote server, the client has `client_cores`, and the null model has all
    other cores. `trace` is the trace of the arrival process, or None.
    """

    server: str
    cores: int | None
    client_cores: int | None
    arrivals: MeasuredArrivals
    trace: TraceOf | None
    client: MeasuredClient
    seed: int
    requests: tuple[RequestOfModel, ...]
