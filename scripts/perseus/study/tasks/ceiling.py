"""Define the task: measure the client ceiling (the highest rate that the client can send) for one
server."""

from __future__ import annotations

from perseus.study.base import Part
from perseus.study.tasks.measure import MeasuredArrivals, MeasuredClient
from perseus.study.traces import TraceOf


class RequestOfModel(Part):
    """The requests to one model, each with `images` images.

    `sla_ms` is the latency limit of the model's SLA. The allowed send lag follows from `sla_ms`.
    The limit is rounded down to 50, 100, 200, 500, ... ms, so that a small change of the SLA does
    not repeat the measurement.
    """

    model: str
    images: int
    sla_ms: float


class CeilingTask(Part):
    """Settings of the measurement of a client ceiling. Input files of the job contain the shapes of
    the requests.

    Perseus measures the client ceiling with a server on this host and a null model (a model that
    does no work). The launcher and the runtime in the study have no effect. `cores` is the number
    of cores that the server `server` has in the study, or None for a remote server. For a remote
    server, the client uses `client_cores` cores, and the null model uses all other cores of this
    host. `trace` is the trace of the arrival process, or None.
    """

    server: str
    cores: int | None
    client_cores: int | None
    arrivals: MeasuredArrivals
    trace: TraceOf | None
    client: MeasuredClient
    seed: int
    requests: tuple[RequestOfModel, ...]
