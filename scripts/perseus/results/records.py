"""Define the pydantic models of record.json, the results of one cell."""

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
from perseus.study.tasks.measure import MeasureTask

Row = dict[str, Any]


def number(value: float | None) -> float:
    """Return a number from a JSON file of results as a float, and null as NaN."""
    return float("nan") if value is None else float(value)


Number = Annotated[float, BeforeValidator(number)]


def plain_record(folder: Path) -> Row:
    """Return the content of record.json in a folder of raw results, with the additional key
    `folder`."""
    return {**json.loads((folder / "record.json").read_text()), "folder": folder}


class Moment(BaseModel):
    """The same moment on two clocks of the host: Unix time and the monotonic clock."""

    unix_ns: int
    monotonic_ns: int


class Ending(BaseModel):
    """Outcome of an attempt to measure a cell, with the reason."""

    outcome: Outcome
    reason: str


class ServedModelRecord(BaseModel):
    """A model that a remote server already served before the study."""

    model_config = ConfigDict(frozen=True)

    name: str
    version: str
    backend: str
    config_sha256: str
    max_batch_size: int


class Record(BaseModel):
    """Content of record.json of a cell: the keys that every kind of experiment has.

    The attribute `kind` of a subclass names a kind of experiment, and the subclass adds the keys of
    this kind. `folder` is the folder of record.json. The data dictionary prints the descriptions of
    the keys.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)
    kind: ClassVar[str]

    folder: Path
    task: MeasureTask = Field(
        alias="cell",
        description=(
            "task of the cell: the part of the configuration that determines what Perseus"
            " measures in this cell"
        ),
    )
    host: dict[str, Any] = Field(
        description=(
            "facts of the host: processor, memory, kernel, cores of server and client, and versions"
            " of the software. `cpu_quota_cores` is the CPU quota of the container, or null without"
            " a quota. In `topology`, `tells_siblings` says whether the machine reports which CPUs"
            " share a physical core. `shared_by_server_and_client` lists the CPUs of the physical"
            " cores that server and client share. `topology` also lists the NUMA nodes of server"
            " and client. `gpu` has the driver, the CUDA version, whether MPS runs, and each GPU"
            " with its MIG instances. `client_realtime` says whether the kernel scheduled the"
            " client processes before ordinary processes (SCHED_RR), and is null if no client ran."
        )
    )
    gpu_watts: Number = Field(
        description=(
            "mean total power of all GPUs of the server in the last certification window that"
            " passed, W. In a replay, this is the mean over the first window with all tenants. Null"
            " without this window, or if the GPUs do not report their power."
        )
    )
    host_watts: Number = Field(
        default=float("nan"),
        description=(
            "mean power of the host's processors and their memory in the same window as"
            " `gpu_watts`, W, read from the counters in /sys/class/powercap. The power includes all"
            " processes of the host, also the client. Null if the server is remote, or if the"
            " counters do not exist or are not readable."
        ),
    )
    started: Moment = Field(
        description=(
            "time at which the measurement of the cell began, on two clocks: `unix_ns` is Unix"
            " time, and `monotonic_ns` is the time on the monotonic clock of the other files of the"
            " cell"
        )
    )
    finished_monotonic_ns: int = Field(
        description="time at which the measurement of the cell ended, ns on the monotonic clock"
    )
    attempt: int = Field(
        description=(
            "number of the attempt that counts, counted from 1. record.json and the tables describe"
            " the server and the windows of this attempt."
        )
    )
    attempts: tuple[Ending, ...] = Field(
        description=(
            "`outcome` and `reason` of each attempt to measure the cell. After a temporary failure"
            " (unsteady, throttled, client_limited, disturbed or failed), Perseus measures the cell"
            " again on a fresh server."
        )
    )
    startup_s: Number = Field(
        description=(
            "time from the start of the server until all models are ready, s. Null if the cell has"
            " no server."
        )
    )
    server_name: str | None = Field(
        default="triton",
        description=(
            "name of the server software, as the server reports it. Null if the cell has no server."
        ),
    )
    triton_version: str | None = Field(
        description=(
            "version of the server software, as the server reports it. Null if the cell has no"
            " server."
        )
    )
    tells_statistics: bool = Field(
        default=True,
        description=(
            "true if the server reports the queue time and the compute time of requests. If false,"
            " the columns of queue, compute and client times in the result files are null."
        ),
    )
    image_id: str | None = Field(
        default=None,
        description=(
            "id of the container image that docker or podman ran. Null for other launchers."
        ),
    )
    round_trip_p50_ms: Number = Field(
        description=(
            "median latency of 20 health requests over gRPC, ms. Perseus sends these requests one"
            " after another before any load. The network and the server's front end add this time"
            " to every latency."
        )
    )
    first_inference_ms: dict[str, Number] = Field(
        description=(
            "per tenant, latency of the tenant's very first request after the start of the server,"
            " ms"
        )
    )
    relative_errors: dict[str, Number] = Field(
        description=(
            "per tenant, relative error of the server's responses, compared with the results of"
            " torch for the same inputs. For a `served_model`, this is the relative difference"
            " between two responses to the same request. Null for models whose responses change"
            " from request to request."
        )
    )
    computed_precisions: dict[str, str | None] = Field(
        default={},
        description=(
            "per tenant, numeric precision of the computation. If the runtime can choose the"
            " precision itself (OpenVINO), this is the precision that the runtime reports;"
            " otherwise it is the configured precision. Null if only the server knows the"
            " precision."
        ),
    )
    max_batch_sizes: dict[str, int] = Field(
        default={},
        description=(
            "per tenant, number of images in the largest batch that the server accepts or forms."
            " This is the configured `max_batch_size`, or 1 for a model without a batch dimension."
            " For a `served_model`, this is the number that the server states."
        ),
    )
    served_models: dict[str, ServedModelRecord] = Field(
        default={},
        description=(
            "per tenant with a `served_model`, facts about this model on its server: `version`,"
            " `backend`, `inputs` and `outputs` (with the requested shapes), `max_batch_size` (0 if"
            " the model has no batch dimension), `dynamic_batching`, and `config_sha256` of its"
            " configuration. A server does not report the content of the model files."
        ),
    )
    outcome: str = Field(
        description=(
            "outcome of the cell: ok, uncertified (no tested rate was certified, but the cell"
            " usually has an estimate), predicted (not measured, since earlier mixes predict the"
            " result well enough), infeasible (the server cannot keep the SLA at any load, or the"
            " server died under the load of a soak test, or the model cannot be exported for a"
            " setting of a grid), blocked (the rates of the cell depend on dedicated peaks that"
            " were not found), client_limited (the client reached its limit before the server),"
            " disturbed (other processes made the windows invalid), unsteady (the speed of the"
            " server changed), throttled (a CPU quota stopped the server) or failed (the server"
            " died or responded with errors). In the cells of a grid, and in shared cells that use"
            " dedicated peaks, failed also means that the server did not start or sent wrong"
            " responses."
        )
    )
    reason: str = Field(description="reason for an outcome other than ok")
    requests: int = Field(
        description=(
            "number of requests in all windows of all attempts, without the requests in settling"
            " times"
        )
    )
    measured_s: float = Field(description="total length of all windows of all attempts, s")
    unloaded_p50_ms: dict[str, Number] = Field(
        description=(
            "per tenant, median latency of requests that are sent one after another without other"
            " load, ms"
        )
    )
    unseen_p50_ms: dict[str, Number] = Field(
        default_factory=dict,
        description=(
            "per tenant, median latency without load, ms, of requests with inputs that the server"
            " has not seen before. Null if the server answers these requests with an error."
        ),
    )
    unbatched_limit_rps: dict[str, Number] = Field(
        default_factory=dict,
        description=(
            "per tenant, largest throughput of its model instances without batching, requests/s."
            " This is the number of instances divided by the service time of a request with inputs"
            " that the server has not seen before. Null for ensembles and for models that form"
            " batches, or if the server does not report the service time."
        ),
    )
    traces: dict[str, str] = Field(
        default={},
        description=(
            "per replayed trace file, a summary in words: number of requests, duration, mean rate,"
            " and the name and unit of the column with the arrival times"
        ),
    )
    throttled: str | None = Field(
        default=None,
        description=(
            "message with the share of the quota periods in which a CPU quota stopped server and"
            " client. Null if this share is at most 1 %."
        ),
    )
    warnings: tuple[str, ...] = Field(
        default=(),
        description=(
            "reasons to doubt the results, one sentence each. Perseus warns if the throughput of a"
            " tenant in the median window of a phase exceeds 1.2 x `unbatched_limit_rps`, if the"
            " runtime computes a model in another precision than configured, if a CPU quota stops"
            " the server, or if a tenant has `deterministic: false`."
        ),
    )
    request_bytes: dict[str, Number] = Field(
        default_factory=dict,
        description=(
            "per tenant, mean input size of the example requests, bytes. With shared memory, the"
            " client does not send these bytes over the network."
        ),
    )
    client_preprocess_ms: dict[str, Number] = Field(
        default_factory=dict,
        description=(
            "per tenant with `preprocessing`, CPU time that the client needs to convert images into"
            " the tensors of one request, ms, as the median of 40 requests"
        ),
    )
    errors: dict[str, dict[str, str]] = Field(
        description="per tenant, the first error message of each kind of failed request"
    )

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read record.json in a folder of raw results."""
        return cls.model_validate(plain_record(folder))

    @property
    def software(self) -> str:
        """Name of the server software, for example "Triton"."""
        return "Triton" if self.server_name in ("triton", None) else self.server_name

    def windows(self) -> list[Row]:
        """Return the rows of windows.parquet for the attempt that the record describes: one row per
        window and tenant."""
        stands = [("attempt", "=", self.attempt)]
        return list(pq.read_table(self.folder / "windows.parquet", filters=stands).to_pylist())


class Line(BaseModel):
    """Load line: at load factor s, each tenant has the rate base + s x direction."""

    base_rps: tuple[Number, ...]
    direction_rps: tuple[Number, ...]


class RoundRecord(BaseModel):
    """Throughputs in one round of saturation probes: of each tenant alone, and of each tenant while
    all tenants are under load."""

    alone_rps: tuple[Number, ...]
    together_rps: tuple[Number, ...]


class ModelRecord(BaseModel):
    """Largest loads within the SLAs in a simulated queue (see `model` in PeakRecord). Unknown loads
    are empty or NaN."""

    alone_rps: tuple[Number, ...] = ()
    scale: Number = float("nan")
    scale_error: Number = float("nan")
    utilisation: Number = float("nan")


class PeakRecord(Record):
    """Record of a search for a peak. A load factor is NaN if it is unknown."""

    kind: ClassVar[str] = "peak"

    line: Line = Field(
        description=(
            "load line, on which the rate of each tenant is base + s x direction at load factor s."
            " `base_rps` and `direction_rps` have one entry per tenant, requests/s."
        )
    )
    weights: tuple[int, ...] = Field(
        default=(),
        description=(
            "per tenant, its weight in the measured mix. The rate of a tenant is proportional to"
            " weight x dedicated peak. If the mix follows the demand, the weights are whole"
            " percentages. Empty for load lines that are no mix."
        ),
    )
    dedicated_rps: dict[str, Number] = Field(
        description=(
            "per tenant, the dedicated peak from which Perseus computed the load line, requests/s."
            " Empty in a dedicated cell."
        )
    )
    estimate_scale: Number = Field(
        description="estimated peak, as a load factor s on the load line"
    )
    certified_scale: Number = Field(
        description=(
            "highest tested load factor at which new windows after the search passed (certified"
            " load factor)"
        )
    )
    certified_window: int = Field(
        description=(
            "number of the last window that certified `certified_scale`, or -1 if no load factor"
            " was certified"
        )
    )
    first_failing_scale: Number = Field(
        description=("lowest load factor above `certified_scale` at which a window failed")
    )
    cliff: str = Field(
        description=(
            "cliff in words. A cliff is an increase of the load by at most 25 % that raises the"
            " latency by a factor of more than 20, from within the SLA to beyond the SLA. Empty"
            " without a cliff."
        )
    )
    other_load: str = Field(
        default="",
        description=(
            "largest load of other processes on the server's cores or GPUs in a valid window. Empty"
            " if this load was at most 10 %."
        ),
    )
    speeds_rps: dict[str, tuple[Number, ...]] = Field(
        description=(
            "per tenant, its throughput in each saturation probe of the search, while no other"
            " tenant is under load, requests/s. Null for a tenant without load. Empty if the cell"
            " ran no search."
        )
    )
    work_ms: dict[str, tuple[float, ...]] = Field(
        default={},
        description=(
            "per tenant, the service times in the saturation probes, ms. Perseus sorts the times"
            " between consecutive responses, divides them into 100 groups of equal size, and stores"
            " the mean of each group."
        ),
    )
    rounds: tuple[RoundRecord, ...] = Field(
        default=(),
        description=(
            "throughput of the saturated server in each round of saturation probes, requests/s per"
            " tenant. `alone_rps` is the throughput of a tenant alone, and `together_rps` its"
            " throughput while all tenants are under load. Null for a tenant without load."
        ),
    )
    model: ModelRecord = Field(
        default=ModelRecord(),
        description=(
            "largest loads within the SLAs in a simulated queue with the service times of this"
            " cell. `alone_rps` is the limit of each tenant alone, requests/s. `scale` is the load"
            " factor at the limit of the load line. `scale_error` is the standard deviation of the"
            " logarithm of `scale` due to the uncertain queueing discipline. `utilisation` is the"
            " utilisation of the server at `scale`."
        ),
    )
    posterior_scales: tuple[float, ...] = Field(
        description="random draws from the posterior distribution of the load factor at the peak"
    )

    @property
    def run(self) -> Run:
        return Run.model_validate(self.task.run)

    @property
    def has_limit(self) -> bool:
        """True if the search found the limit of the server."""
        return found_limit(self.outcome, self.estimate_scale, self.posterior_scales)

    def rates_rps(self, scale: float) -> Floats:
        """Return the rate of each tenant in requests/s at the load factor `scale`."""
        return np.array(self.line.base_rps) + scale * np.array(self.line.direction_rps)
