"""Define the content of record.json, the results of one cell, as pydantic models."""

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
    """Return a number as a float, and None (null in a JSON file) as NaN."""
    return float("nan") if value is None else float(value)


Number = Annotated[float, BeforeValidator(number)]


def plain_record(folder: Path) -> Row:
    """Return the content of record.json in a folder of raw results, with the folder under the
    additional key `folder`."""
    return {**json.loads((folder / "record.json").read_text()), "folder": folder}


class Moment(BaseModel):
    """The same moment on two clocks of the host: Unix time and the monotonic clock."""

    unix_ns: int
    monotonic_ns: int


class Ending(BaseModel):
    """Outcome of an attempt to measure a cell, and the reason for this outcome."""

    outcome: Outcome
    reason: str


class ServedModelRecord(BaseModel):
    """A model that a remote server already served before the study (key `served_model`)."""

    model_config = ConfigDict(frozen=True)

    name: str
    version: str
    backend: str
    config_sha256: str
    max_batch_size: int


class Record(BaseModel):
    """Content of record.json of a cell: the keys that every kind of experiment has.

    A subclass adds the keys of one kind of experiment, and its attribute `kind` names this kind.
    `folder` is the folder of record.json. The data dictionary (docs/reference/data.md) prints the
    descriptions of the keys.
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
            " a quota. `topology` lists the NUMA nodes of server and client. In `topology`,"
            " `tells_siblings` is true if the machine reports which CPUs share a physical core, and"
            " `shared_by_server_and_client` lists the CPUs of the physical cores that both server"
            " and client use. `gpu` has the driver, the CUDA version, whether MPS runs, and each"
            " GPU with its MIG instances. `client_realtime` is true if the kernel scheduled the"
            " client processes before ordinary processes (SCHED_RR), and null if no client ran."
        )
    )
    gpu_watts: Number = Field(
        description=(
            "total power of all GPUs of the server, W, as the mean over one window: the last"
            " certification window that passed or, in a replay, the first window in which all"
            " tenants have load. Null without such a window, or if the GPUs do not report their"
            " power."
        )
    )
    host_watts: Number = Field(
        default=float("nan"),
        description=(
            "mean power of the host's processors and their memory in the same window as for"
            " `gpu_watts`, W, read from the counters in /sys/class/powercap. The value includes the"
            " power for the client and for all other processes of the host. Null if the server is"
            " remote, or if the counters do not exist or are not readable."
        ),
    )
    started: Moment = Field(
        description=(
            "start of the measurement of the cell, as Unix time (`unix_ns`) and on the monotonic"
            " clock that the other files of the cell use (`monotonic_ns`)"
        )
    )
    finished_monotonic_ns: int = Field(
        description="end of the measurement of the cell, ns on the monotonic clock"
    )
    attempt: int = Field(
        description=(
            "index of the attempt from which the results in record.json and in the tables come,"
            " starting at 1"
        )
    )
    attempts: tuple[Ending, ...] = Field(
        description=(
            "`outcome` and `reason` of each attempt to measure the cell. After a temporary failure"
            " (unsteady, throttled, client_limited, disturbed or failed), Perseus measures the cell"
            " again on a restarted server."
        )
    )
    startup_s: Number = Field(
        description=(
            "time from the start of the server until all models are ready, s. For a remote server,"
            " the time to load the models. Null if the cell has no server."
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
            "true if the server reports the queue time and the compute time of requests. If"
            " `tells_statistics` is false, the columns of queue, compute and client times in the"
            " result files are null."
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
            "median latency of 20 health requests that Perseus sends over gRPC, one after another"
            " and without other load, ms. The network and the server's front end add about this"
            " time to the latency of every request."
        )
    )
    first_inference_ms: dict[str, Number] = Field(
        description=(
            "per tenant, latency of Perseus's first request to the tenant after the start of the"
            " server, ms"
        )
    )
    relative_errors: dict[str, Number] = Field(
        description=(
            "per tenant, relative difference between the responses of the server and reference"
            " responses to the same inputs. The reference responses come from torch for"
            " classification models of torchvision, and from ONNX Runtime for all other models that"
            " Perseus deploys. For a `served_model`, this is the relative difference between two"
            " responses of the server to the same request. Null for a model that may give different"
            " responses to the same request."
        )
    )
    computed_precisions: dict[str, str | None] = Field(
        default={},
        description=(
            "per tenant, numeric precision of the computation. If the runtime can choose the"
            " precision itself (OpenVINO), this is the precision that the runtime reports;"
            " otherwise, this is the configured precision. Null if the precision is unknown, for"
            " example because NVIDIA's backend for OpenVINO reports none."
        ),
    )
    max_batch_sizes: dict[str, int] = Field(
        default={},
        description=(
            "per tenant, number of images in the largest batch that the server accepts or forms:"
            " the configured `max_batch_size`, or 1 for a model without a batch dimension. For a"
            " `served_model`, the server states this number."
        ),
    )
    served_models: dict[str, ServedModelRecord] = Field(
        default={},
        description=(
            "per tenant with a `served_model`, facts about this model on its server: `version`,"
            " `backend`, `inputs` and `outputs` (with the requested shapes), `max_batch_size` (0 if"
            " the model has no batch dimension), `dynamic_batching`, and `config_sha256` (hash of"
            " the configuration of the model)"
        ),
    )
    outcome: str = Field(
        description=(
            "outcome of the cell (docs/reference/verdicts.md): ok, uncertified, predicted,"
            " infeasible, blocked, client_limited, disturbed, unsteady, throttled or failed. If the"
            " server did not start or sent wrong responses, the outcome is failed in three kinds of"
            " cells: cells of a grid, cells of a catalogue, and cells of a shared server that use"
            " dedicated peaks. In all other cells, such a server ends the job with an error. In the"
            " experiments `startup` and `aa`, the outcome is also failed if a later start of the"
            " server failed."
        )
    )
    reason: str = Field(description="reason for an outcome other than ok")
    requests: int = Field(
        description=(
            "number of requests in all windows of all attempts, except the requests in settling"
            " times"
        )
    )
    measured_s: float = Field(description="total length of all windows of all attempts, s")
    unloaded_p50_ms: dict[str, Number] = Field(
        description=(
            "per tenant, median latency of requests that the client sends one after another without"
            " other load, ms"
        )
    )
    unseen_p50_ms: dict[str, Number] = Field(
        default_factory=dict,
        description=(
            "per tenant, median latency of requests whose inputs the server has not seen before,"
            " without other load, ms. Null if the server answers these requests with an error, or"
            " if the requests are image files."
        ),
    )
    unbatched_limit_rps: dict[str, Number] = Field(
        default_factory=dict,
        description=(
            "per tenant, largest throughput that the instances of its model can reach without"
            " batches and caches, requests/s: the number of instances divided by the service time"
            " of requests whose inputs the server has not seen before. Null in five cases: (1) the"
            " model is an ensemble; (2) the server combines requests for the model into batches;"
            " (3) the server does not report the number of instances; (4) `unseen_p50_ms` is null;"
            " (5) the service time is unknown, because the server has no gRPC and reports no"
            " statistics."
        ),
    )
    traces: dict[str, str] = Field(
        default={},
        description=(
            "summary of each trace file that Perseus replayed, in words: number of requests,"
            " duration, mean rate, and the name and unit of the column with the arrival times"
        ),
    )
    throttled: str | None = Field(
        default=None,
        description=(
            "message that a CPU quota stopped the server and the client, with the share of the"
            " quota's time periods that had such a stop. Null without a quota, or if this share is"
            " at most 1 %."
        ),
    )
    warnings: tuple[str, ...] = Field(
        default=(),
        description=(
            "reasons to doubt the results, one sentence each. Perseus warns in four cases: (1) the"
            " throughput of a tenant (median over the windows of a phase) exceeds 1.2 x"
            " `unbatched_limit_rps`, for example because a cache answers requests; (2) the runtime"
            " computes a model in another precision than configured; (3) a CPU quota stops the"
            " server; (4) a tenant has `deterministic: false`."
        ),
    )
    request_bytes: dict[str, Number] = Field(
        default_factory=dict,
        description=(
            "per tenant, mean size of the inputs in one request, bytes. With shared memory, the"
            " client does not send these bytes over the network."
        ),
    )
    client_preprocess_ms: dict[str, Number] = Field(
        default_factory=dict,
        description=(
            "per tenant with `preprocessing`, CPU time that the client needs to convert images into"
            " the tensors of one request (median of 40 requests), ms"
        ),
    )
    errors: dict[str, dict[str, str]] = Field(
        description="per tenant, the first error message of each kind of failed request"
    )

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Return the content of record.json in a folder of raw results."""
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
    """Load line: at load factor s, each tenant has the rate base + s x direction.

    `base_rps` and `direction_rps` have one value per tenant, in requests/s.
    """

    base_rps: tuple[Number, ...]
    direction_rps: tuple[Number, ...]


class RoundRecord(BaseModel):
    """Throughput of each tenant in one round of saturation probes, in requests/s: while only this
    tenant has load, and while all tenants have load."""

    alone_rps: tuple[Number, ...]
    together_rps: tuple[Number, ...]


class ModelRecord(BaseModel):
    """Peaks in a simulated queue (see `PeakRecord.model`). `alone_rps` is empty if unknown, and any
    other unknown value is NaN."""

    alone_rps: tuple[Number, ...] = ()
    scale: Number = float("nan")
    scale_error: Number = float("nan")
    utilisation: Number = float("nan")


class PeakRecord(Record):
    """Record of a search for a peak. Unknown load factors are NaN."""

    kind: ClassVar[str] = "peak"

    line: Line = Field(
        description=(
            "load line: at load factor s, each tenant has the rate base + s x direction. `base_rps`"
            " and `direction_rps` have one entry per tenant, requests/s."
        )
    )
    weights: tuple[int, ...] = Field(
        default=(),
        description=(
            "weights of the measured mix, one per tenant. The rate of a tenant is proportional to"
            " its weight x its dedicated peak. If the mix has the proportions of the configured"
            " demand, the weights are whole percentages. Empty if the load line is not a mix."
        ),
    )
    dedicated_rps: dict[str, Number] = Field(
        description=(
            "per tenant, the dedicated peak from which Perseus computed `base_rps` and"
            " `direction_rps` of the load line, requests/s. Empty in the cell of a dedicated peak."
        )
    )
    estimate_scale: Number = Field(
        description="load factor s of the estimated peak on the load line"
    )
    certified_scale: Number = Field(
        description=(
            "load factor s of the certified rate on the load line. Null without a certified rate."
        )
    )
    certified_window: int = Field(
        description=(
            "index (column `window` of windows.parquet) of the last window that certified"
            " `certified_scale`, or -1 without a certified rate"
        )
    )
    first_failing_scale: Number = Field(
        description=("lowest load factor above `certified_scale` at which a window failed")
    )
    cliff: str = Field(
        description=(
            "description of the cliff. At a cliff, an increase of the load by at most 25 % raises"
            " the latency by a factor of more than 20, so that a tenant misses its SLA. Empty"
            " without a cliff."
        )
    )
    other_load: str = Field(
        default="",
        description=(
            "message that other processes used more than 10 % of the server's cores or GPUs in a"
            " valid window. The message states their largest load in such a window. Empty without"
            " such a window."
        ),
    )
    speeds_rps: dict[str, tuple[Number, ...]] = Field(
        description=(
            "per tenant, its throughput in each saturation probe in which only this tenant has"
            " load, requests/s. A saturation probe is a short closed loop that keeps the server"
            " busy. Null for a tenant without load on the load line. Empty if the cell ran no"
            " search."
        )
    )
    work_ms: dict[str, tuple[float, ...]] = Field(
        default={},
        description=(
            "per tenant, the distribution of the service times in the saturation probes, ms."
            " On a saturated server, the time between two responses is a service time. Perseus"
            " sorts these times, divides them into at most 100 groups of nearly equal size, and"
            " stores the mean of each group."
        ),
    )
    rounds: tuple[RoundRecord, ...] = Field(
        default=(),
        description=(
            "throughputs in each round of saturation probes, one value per tenant, requests/s. A"
            " round measures each tenant alone (`alone_rps`) and all tenants together"
            " (`together_rps`) within seconds, so that the speed of the host hardly changes"
            " (docs/explanation/sharing-ratio.md). Null for a tenant without load on the load line."
        ),
    )
    model: ModelRecord = Field(
        default=ModelRecord(),
        description=(
            "peaks that Perseus computes in a simulated queue with the service times of this cell."
            " `alone_rps` is the simulated peak of each tenant alone, requests/s. `scale` is the"
            " load factor at the simulated peak of the load line. `scale_error` states how"
            " uncertain `scale` is, because the queueing discipline of the server is unknown: it is"
            " the standard deviation of the logarithm of `scale`"
            " (docs/explanation/sharing-ratio.md). `utilisation` is the utilisation of the server"
            " at `scale`."
        ),
    )
    posterior_scales: tuple[float, ...] = Field(
        description=(
            "random draws of the load factor s at the peak, from its posterior distribution. The"
            " draws express how uncertain the peak is."
        )
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
