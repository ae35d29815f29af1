"""Data models of record.json and of the file of ceilings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import pyarrow.parquet as pq
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from perseus.peak.outcome import Outcome, found_limit
from perseus.peak.stats import Floats
from perseus.study.experiments.peak import Run
from perseus.study.tasks.measure import MeasuredArrivals, MeasuredClient, MeasureTask

Row = dict[str, Any]


def number(value: float | None) -> float:
    """Return the type of a number in a result file; null becomes NaN."""
    return float("nan") if value is None else float(value)


Number = Annotated[float, BeforeValidator(number)]


def plain_record(folder: Path) -> Row:
    """Return the raw record in a folder of raw results, with its folder."""
    return {**json.loads((folder / "record.json").read_text()), "folder": folder}


class Moment(BaseModel):
    """One moment on two clocks."""

    unix_ns: int
    monotonic_ns: int


class Ending(BaseModel):
    """The outcome of an attempt, and its reason."""

    outcome: Outcome
    reason: str


class ServedModelRecord(BaseModel):
    """A model that a remote server already had."""

    model_config = ConfigDict(frozen=True)

    name: str
    version: str
    backend: str
    config_sha256: str
    max_batch_size: int


class Record(BaseModel):
    """record.json of a cell in `folder`, with the keys of every kind of experiment.

    Keys of one kind of experiment are read by a subclass, which names the `kind`. The
    descriptions appear in the data dictionary.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)
    kind: ClassVar[str]

    folder: Path
    task: MeasureTask = Field(
        alias="cell",
        description=("the task: the part of the configuration that the cell depends on"),
    )
    host: dict[str, Any] = Field(
        description=(
            "processor, memory, kernel, cores of server and client, versions of the software;"
            " `cpu_quota_cores` is the CPU quota of the container, null without; `topology` says"
            " whether the machine reports which CPUs share a physical core (`tells_siblings`), the"
            " CPUs that server and client share, and the NUMA nodes of both; `gpu` has the driver,"
            " the CUDA version, whether MPS runs, and each GPU with its MIG instances;"
            " `client_realtime` says whether the clients were scheduled before ordinary processes"
            " (SCHED_RR), null if no client ran"
        )
    )
    gpu_watts: Number = Field(
        description=(
            "mean power of all GPUs of the server in the last certified window, W; null without"
            " such a window, or if the GPUs do not report their power"
        )
    )
    host_watts: Number = Field(
        default=float("nan"),
        description=(
            "mean power in that window of the host's processors and their memory, W, by the"
            " counters of /sys/class/powercap: it includes all processes, also the client; null if"
            " the server is remote, or if the counters do not exist or are not readable"
        ),
    )
    started: Moment = Field(
        description=(
            "when the cell began: `unix_ns` and `monotonic_ns` are the same moment on two clocks,"
            " so that the monotonic times of the other files can be dated"
        )
    )
    finished_monotonic_ns: int = Field(description="when it ended, ns")
    attempt: int = Field(
        description=(
            "the attempt that counts, from 1: the record and the tables describe its server and"
            " its windows"
        )
    )
    attempts: tuple[Ending, ...] = Field(
        description="`outcome` and `reason` of each attempt: a cell with a temporary failure"
        " (unsteady, throttled, client_limited, disturbed or failed) is measured again on a fresh"
        " server"
    )
    startup_s: Number = Field(
        description="from the start of the server to all models ready, s; null without a server"
    )
    server_name: str | None = Field(
        default="triton",
        description="name of the server software, as the server reports it; null without a server",
    )
    triton_version: str | None = Field(
        description=(
            "version of the server software, as the server reports it; null without a server"
        )
    )
    tells_statistics: bool = Field(
        default=True,
        description=(
            "whether the server reports how long requests queue and compute; if not, the queue,"
            " compute and client times are null"
        ),
    )
    image_id: str | None = Field(
        default=None,
        description=(
            "id of the image that docker or podman ran, which shows whether the tag has moved;"
            " null for other launchers"
        ),
    )
    round_trip_p50_ms: Number = Field(
        description=(
            "median of 20 health requests over gRPC, one after another, before any load: the time"
            " that the network and the server's front end add to every latency, ms"
        )
    )
    first_inference_ms: dict[str, Number] = Field(
        description="per tenant, latency of the very first request to the server, ms"
    )
    relative_errors: dict[str, Number] = Field(
        description=(
            "per tenant, relative error of the served answers against torch; of a `served_model`,"
            " the difference between the answers to the same requests; null if the answers change"
            " from call to call"
        )
    )
    computed_precisions: dict[str, str | None] = Field(
        default={},
        description=(
            "per tenant, the numeric precision of the computation: as the runtime reports it if"
            " the runtime may choose (OpenVINO), else as configured; null if only the server knows"
            " it"
        ),
    )
    max_batch_sizes: dict[str, int] = Field(
        default={},
        description=(
            "per tenant, images of the largest batch that its server accepts or forms:"
            " `max_batch_size` as configured, but 1 for a network without a batch dimension; for a"
            " `served_model`, that of the server"
        ),
    )
    served_models: dict[str, ServedModelRecord] = Field(
        default={},
        description=(
            "per tenant with a `served_model`, the model that its server had under that `name`:"
            " `version`, `backend`, `inputs` and `outputs` (with the requested shapes),"
            " `max_batch_size` (0: a request has no batch), `dynamic_batching`, and"
            " `config_sha256` of its configuration. A server does not report the content of the"
            " model's files"
        ),
    )
    outcome: str = Field(
        description="ok, uncertified (no rate was certified; mostly with an estimate), predicted"
        " (not measured, because earlier mixes predict it well enough), infeasible (the server"
        " cannot keep the SLA at any load, ended under the load of a soak test, or a setting of a"
        " grid has no model to serve), blocked (its rates depend on dedicated peaks that were not"
        " found), client_limited (the client reached its limit before the server), disturbed"
        " (other processes made the windows invalid), unsteady (the server's speed changed),"
        " throttled (a CPU quota stopped it) or failed (the server died or answered with errors,"
        " or, with the setting of a grid or with tenants whose dedicated peaks the cell rests on,"
        " did not start or answered wrongly)"
    )
    reason: str = Field(description="why the verdict is not ok")
    requests: int = Field(description="requests counted in all windows, of all attempts")
    measured_s: float = Field(description="length of all windows, of all attempts, s")
    unloaded_p50_ms: dict[str, Number] = Field(
        description="per tenant, median latency of single requests without load, ms"
    )
    unseen_p50_ms: dict[str, Number] = Field(
        default_factory=dict,
        description=(
            "per tenant, median latency of single requests without load whose inputs the server"
            " has not seen, ms; null if the server answers them with an error"
        ),
    )
    unbatched_limit_rps: dict[str, Number] = Field(
        default_factory=dict,
        description=(
            "per tenant, largest requests/s of its instances without batching: their number over"
            " the service time of single requests whose inputs the server has not seen; null for"
            " models that form batches or are ensembles, or if the server does not report the time"
        ),
    )
    traces: dict[str, str] = Field(
        default={},
        description=(
            "per replayed file of recorded arrivals, what was read: requests, duration, mean rate,"
            " the column of the times and its unit"
        ),
    )
    throttled: str | None = Field(
        default=None,
        description=(
            "share of its periods in which a CPU quota stopped server and client, as text, if"
            " above 1 %; else null"
        ),
    )
    warnings: tuple[str, ...] = Field(
        default=(),
        description=(
            "doubts about the results, one sentence each: a phase in whose median window a tenant"
            " answered more than 1.2 x `unbatched_limit_rps`, a network that was computed in"
            " another precision than configured, a CPU quota that stopped the server, or a tenant"
            " with `deterministic: false`"
        ),
    )
    request_bytes: dict[str, Number] = Field(
        default_factory=dict,
        description=(
            "per tenant, input bytes of a request, mean of the example requests; with shared"
            " memory these bytes are not sent over the network"
        ),
    )
    client_preprocess_ms: dict[str, Number] = Field(
        default_factory=dict,
        description=(
            "per tenant with `preprocessing`, CPU time in which the client converts images into"
            " the tensors of a request, median of 40, ms"
        ),
    )
    errors: dict[str, dict[str, str]] = Field(
        description="per tenant, the first message of each kind of error"
    )

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the record in a folder of raw results."""
        return cls.model_validate(plain_record(folder))

    @property
    def software(self) -> str:
        """The name of the server software."""
        return "Triton" if self.server_name in ("triton", None) else self.server_name

    def windows(self) -> list[Row]:
        """Return the rows of windows.parquet of the attempt that counts, one per window and
        tenant."""
        stands = [("attempt", "=", self.attempt)]
        return list(pq.read_table(self.folder / "windows.parquet", filters=stands).to_pylist())


class Line(BaseModel):
    """A load line r(s) = base + s x direction, one entry per tenant."""

    base_rps: tuple[Number, ...]
    direction_rps: tuple[Number, ...]


class RoundRecord(BaseModel):
    """One round of a shared cell at saturation."""

    alone_rps: tuple[Number, ...]
    together_rps: tuple[Number, ...]


class ModelRecord(BaseModel):
    """Limits of a simulated server; empty and NaN if the service times are unknown."""

    alone_rps: tuple[Number, ...] = ()
    scale: Number = float("nan")
    scale_error: Number = float("nan")
    utilisation: Number = float("nan")


class PeakRecord(Record):
    """The result of a search.

    Points of the load line are load factors, NaN if unknown.
    """

    kind: ClassVar[str] = "peak"

    line: Line = Field(
        description="the load line r(s) = base + s x direction: `base_rps` and `direction_rps`,"
        " requests/s, one entry per tenant"
    )
    weights: tuple[int, ...] = Field(
        default=(),
        description=(
            "per tenant, the weights of the measured mix, in whole percent for the mix of the"
            " demand; empty on other lines"
        ),
    )
    dedicated_rps: dict[str, Number] = Field(
        description=(
            "per tenant, the dedicated peak from which the load line was computed, requests/s;"
            " empty in a dedicated cell"
        )
    )
    estimate_scale: Number = Field(description="estimated limit, as load factor s")
    certified_scale: Number = Field(description="highest s that passed fresh windows")
    certified_window: int = Field(
        description="number of the last of those windows; -1 if there is none"
    )
    first_failing_scale: Number = Field(description="lowest s above the certified one that failed")
    cliff: str = Field(
        description=(
            "cliff: where latency rises more than 20 times within 25 % of load, from within the"
            " SLA to beyond it; empty without a cliff"
        )
    )
    other_load: str = Field(
        default="",
        description="largest load of other processes on the server's cores or GPUs in a valid"
        " window; empty if it was at most 10 %",
    )
    speeds_rps: dict[str, tuple[Number, ...]] = Field(
        description="per tenant, the throughput of the tenant alone in each saturation probe of"
        " the search, requests/s; null without load, empty without a search"
    )
    work_ms: dict[str, tuple[float, ...]] = Field(
        default={},
        description="per tenant, the service times in the saturation probes: the times between"
        " responses, in order, as the mean of each hundredth of them, ms",
    )
    rounds: tuple[RoundRecord, ...] = Field(
        default=(),
        description="throughput of the saturated server in each round, requests/s per tenant:"
        " `alone_rps` to each tenant alone, `together_rps` to all at once; null without load",
    )
    model: ModelRecord = Field(
        default=ModelRecord(),
        description=(
            "limits of a simulated queue with the service times of this cell: `alone_rps` of each"
            " tenant alone, requests/s; `scale` of the load line; `scale_error`, the standard"
            " deviation of its logarithm if the queueing discipline is uncertain; and"
            " `utilisation` of the server at that scale"
        ),
    )
    posterior_scales: tuple[float, ...] = Field(
        description="draws from the posterior of the estimated load factor"
    )

    @property
    def run(self) -> Run:
        return Run.model_validate(self.task.run)

    @property
    def has_limit(self) -> bool:
        """True if the search found the limit of the server."""
        return found_limit(self.outcome, self.estimate_scale, self.posterior_scales)

    def rates_rps(self, scale: float) -> Floats:
        """Return the requests/s of each tenant at a point of the load line."""
        return np.array(self.line.base_rps) + scale * np.array(self.line.direction_rps)


class ClosedLoad(BaseModel):
    """A closed loop with a fixed number of requests in flight."""

    concurrency: int
    rate_rps: float
    cpu_us_per_request: float


class OpenLoad(BaseModel):
    """An open-loop rate that was tried, and whether its window was valid."""

    rate_rps: float
    send_lag_p99_ms: Number
    client_cpu: Number
    valid: bool


class RequestShape(BaseModel):
    """A request shape, its models, and the loads that were tried."""

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
        """The ceiling; rates are in descending order."""
        return next((each for each in self.open if each.valid), None)


class Ceiling(BaseModel):
    """A file of the client's ceilings beside one server."""

    model_config = ConfigDict(frozen=True)

    server: str = Field(description="name of the server in the configuration")
    client: MeasuredClient = Field(description="the `client` part of the configuration")
    arrivals: MeasuredArrivals = Field(description="the arrivals of the study, and of the windows")
    processes: int = Field(description="client processes")
    started_unix_ns: int = Field(description="when the measurement began")
    host: dict[str, Any] = Field(description="as in record.json")
    shapes: tuple[RequestShape, ...] = Field(
        description=(
            "per request shape: its models; `closed`, the rate and the client's CPU time at"
            " several concurrencies; `open`, the rates that were tried, downwards, each with its"
            " send lag and whether the window was valid: the first valid rate is the ceiling;"
            " `longest_lag_ms`, the largest allowed p99 of the send lag; `disturbed`, the loops"
            " and rates that other processes disturbed, so that the ceiling may be too low; empty"
            " if nothing"
        )
    )

    @classmethod
    def read(cls, path: Path) -> Self:
        return cls.model_validate_json(path.read_bytes())
