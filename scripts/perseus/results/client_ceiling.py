"""Define the content of results/<study>/ceilings/<server>.json, the client ceilings beside one
server, as pydantic models."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from perseus.results.records import Number
from perseus.study.tasks.measure import MeasuredArrivals, MeasuredClient


class ClosedLoad(BaseModel):
    """Throughput and CPU time of the client in a closed loop with `concurrency` requests in
    flight."""

    concurrency: int
    rate_rps: float
    cpu_us_per_request: float


class OpenLoad(BaseModel):
    """A rate that the client tried to send in an open loop, and whether the window at this rate was
    valid."""

    rate_rps: float
    send_lag_p99_ms: Number
    client_cpu: Number
    valid: bool


class RequestShape(BaseModel):
    """A request shape: sizes of the inputs, and number of images per request.

    `models` are the models whose requests have this shape. `closed` and `open` are the loads that
    the client tried in closed loops and in open loops. The rates in `open` are in descending order.
    """

    models: tuple[str, ...]
    inputs: str
    request_batch_size: int
    request_bytes: int
    closed: tuple[ClosedLoad, ...]
    open: tuple[OpenLoad, ...]
    longest_lag_ms: float = 1.0
    disturbed: str

    @property
    def highest_valid(self) -> OpenLoad | None:
        """Client ceiling: the highest rate with a valid window; None without a valid window."""
        return next((each for each in self.open if each.valid), None)


class Ceiling(BaseModel):
    """Content of results/<study>/ceilings/<server>.json: the client ceilings beside one server."""

    model_config = ConfigDict(frozen=True)

    server: str = Field(description="name of the server in the configuration")
    client: MeasuredClient = Field(description="the `client` part of the configuration")
    arrivals: MeasuredArrivals = Field(
        description=(
            "arrival process of the study. Perseus measured the client ceiling with the same"
            " arrival process."
        )
    )
    processes: int = Field(description="number of client processes")
    started_unix_ns: int = Field(description="start of the measurement as Unix time, ns")
    host: dict[str, Any] = Field(description="facts of the host, as in record.json")
    shapes: tuple[RequestShape, ...] = Field(
        description=(
            "one entry per request shape (size of the inputs, images per request), with the models"
            " whose requests have this shape. `closed` has the throughput and the CPU time of the"
            " client in closed loops with several concurrencies. `open` has the rates that the"
            " client tried to send, in descending order. Each rate has its send lag, and `valid` is"
            " true if its window was valid. The highest valid rate is the client ceiling."
            " `longest_lag_ms` is the largest allowed p99 of the send lag. `disturbed` names a"
            " closed loop or a rate for which other processes disturbed every attempt to measure;"
            " the ceiling may then be too low. Otherwise, `disturbed` is empty."
        )
    )

    @classmethod
    def read(cls, path: Path) -> Self:
        return cls.model_validate_json(path.read_bytes())
