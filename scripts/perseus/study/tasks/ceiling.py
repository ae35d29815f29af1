"""Define the task: measure the ceilings of the client beside one server."""

from __future__ import annotations

from perseus.study.base import Part
from perseus.study.tasks.measure import MeasuredArrivals, MeasuredClient
from perseus.study.traces import TraceOf


class RequestOfModel(Part):
    """Requests to a model with a certain number of images.

    The allowed send lag follows from `sla_ms`, the SLA of the model in coarse steps. After a small
    change of the SLA, the ceiling stays valid.
    """

    model: str
    images: int
    sla_ms: float


class CeilingTask(Part):
    """Settings of a ceiling besides the request shapes.

    Perseus measures the ceiling on a local server, for every launcher and runtime. `cores` is the
    number of cores of the server, or None for a remote server. Beside a remote server, the client
    has `client_cores`, and the null model has all other cores. `trace` is the source of the
    arrivals of a trace.
    """

    server: str
    cores: int | None
    client_cores: int | None
    arrivals: MeasuredArrivals
    trace: TraceOf | None
    client: MeasuredClient
    seed: int
    requests: tuple[RequestOfModel, ...]
