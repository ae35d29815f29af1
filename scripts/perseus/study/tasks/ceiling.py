"""Define the task of a job that measures a client ceiling: the highest rate that the client can
send."""

from __future__ import annotations

from perseus.study.base import Part
from perseus.study.tasks.measure import MeasuredArrivals, MeasuredClient
from perseus.study.traces import TraceOf


class RequestOfModel(Part):
    """The requests to one model, each with `images` images.

    `sla_ms` is the latency limit of the model's SLA, rounded down to 50, 100, 200, 500, ... ms, and
    at least 50 ms. From this limit, the measurement computes the largest allowed send lag. Because
    of the rounding, a small edit of the SLA does not repeat the measurement.
    """

    model: str
    images: int
    sla_ms: float


class CeilingTask(Part):
    """Settings of the measurement of a client ceiling. The job reads the shapes of the requests
    from its input files, so the settings do not contain these shapes.

    Perseus measures the client ceiling with a null model (a model that does no work) on an embedded
    server of this host. `cores` is the number of cores of the study's server, or None if this
    server is remote. For a remote server, the client uses `client_cores` cores, and the null model
    uses all other cores of this host. `trace` is the trace of the arrival process, or None.
    """

    server: str
    cores: int | None
    client_cores: int | None
    arrivals: MeasuredArrivals
    trace: TraceOf | None
    client: MeasuredClient
    seed: int
    requests: tuple[RequestOfModel, ...]
