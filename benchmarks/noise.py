"""Record how the speed of a host changes service times. Simulations replay the recordings.

A closed loop keeps a model busy, so the gaps between its responses are the service times. A CNN
does the same computation for every request (Gujarati et al., "Serving DNNs like Clockwork", OSDI
2020), so all differences come from the host. For each processor type and each model, one file has
the recording. The benchmark does not repeat an existing recording.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.limit import Cell, exported, served
from benchmarks.results import Row
from benchmarks.serving import Place, Say
from benchmarks.simulation import RecordedHost
from perseus.host import machine
from perseus.host.files import whole
from perseus.peak.stats import Floats
from perseus.traffic.client import Client

BENCHMARK = "noise"
FOLDER = Path(__file__).parent / "noise"
CELLS = (Cell("squeezenet1_1", "onnxruntime", 1), Cell("mobilenet_v3_small", "onnxruntime", 1))
IN_FLIGHT = 4
MINUTES = 30
BLOCK_S, SETTLE_S, STEP_S = 60.0, 1.0, 0.2
"""One closed loop takes BLOCK_S seconds, and its settling time SETTLE_S seconds. The benchmark
averages the gaps between responses over time steps of STEP_S seconds."""

OVER_S = (0.2, 1.0, 10.0, 60.0)
SLOW = 1.5


@dataclass(frozen=True)
class Recording:
    """The recorded speed of a host: one factor on service times for each `STEP_S` seconds, shape
    (steps,). At the median speed (factor 1), the server sends `answers_per_s` responses per
    second."""

    host: str
    model: str
    answers_per_s: float
    factors: Floats

    @property
    def name(self) -> str:
        return f"{self.host}, {self.model}"

    @classmethod
    def read(cls, path: Path) -> Recording:
        table = pq.read_table(path)
        kept = (b"host", b"model", b"answers_per_s")
        host, model, answers_per_s = (table.schema.metadata[key].decode() for key in kept)
        return cls(host, model, float(answers_per_s), table["per_mille"].to_numpy() / 1000)

    def write(self) -> None:
        """Write the factors in per mille into the file of this host and model."""
        per_mille = np.clip(np.round(1000 * self.factors), 1, 65535).astype(np.uint16)
        table = pa.table({"per_mille": per_mille}).replace_schema_metadata(
            {
                "host": self.host,
                "model": self.model,
                "answers_per_s": f"{self.answers_per_s:.4g}",
            }
        )
        FOLDER.mkdir(exist_ok=True)
        with whole(file_of(self.host, self.model)) as partial:
            pq.write_table(table, partial, compression="zstd")

    @property
    def as_host(self) -> RecordedHost:
        return RecordedHost(self.factors, STEP_S)

    def deviation(self, over_s: float) -> float:
        """Return the standard deviation of the logarithm of factors, each averaged over `over_s`
        seconds."""
        each = round(over_s / STEP_S)
        means = self.factors[: len(self.factors) // each * each].reshape(-1, each).mean(axis=1)
        return float(np.std(np.log(means), ddof=1)) if len(means) > 1 else np.nan


def file_of(host: str, model: str) -> Path:
    slug = "-".join([*host.lower().replace("(r)", "").split(), model])
    return FOLDER / f"{slug}.parquet"


def recordings() -> list[Recording]:
    return [Recording.read(path) for path in sorted(FOLDER.glob("*.parquet"))]


def run(at: Place, say: Say) -> Iterator[Row]:
    host = machine.describe([at.server_core], [at.client_core])["cpu"]
    for cell in CELLS:
        if not file_of(host, cell.architecture).exists():
            _record(at, host, cell, say)
    for recording in recordings():
        case = f"{recording.name}, {len(recording.factors) * STEP_S / 60:.0f} min"
        yield Row(BENCHMARK, case, "median responses/s", recording.answers_per_s)
        for over_s in OVER_S:
            metric = f"standard deviation of the mean host speed over {over_s:g} s"
            yield Row(BENCHMARK, case, metric, recording.deviation(over_s))
        slow = float(np.mean(recording.factors > SLOW))
        yield Row(
            BENCHMARK, case, f"share of time with over {SLOW:g} times the median service time", slow
        )


def _record(at: Place, host: str, cell: Cell, say: Say) -> None:
    onnx = exported(at.folder / "models", cell.architecture, say)
    with served(at, cell, onnx, service_s=0.01) as (client, _):
        gaps_s = np.concatenate([_block(client, cell, say) for _ in range(MINUTES)])
    median_s = float(np.median(gaps_s))
    Recording(host, cell.architecture, 1 / median_s, gaps_s / median_s).write()


def _block(client: Client, cell: Cell, say: Say) -> Floats:
    """Return the mean seconds between responses in each time step of a closed loop."""
    start_ns = time.monotonic_ns()
    client.start_closed(start_ns, BLOCK_S, IN_FLIGHT)
    time.sleep(BLOCK_S)
    client.stop(patience_s=2.0)
    requests = client.result().requests
    done_s = (np.sort(requests.done_ns[requests.answered]) - start_ns) / 1e9
    say(f"{cell.architecture}: {len(done_s) / BLOCK_S:.1f} responses/s")
    return mean_gaps_s(done_s[done_s > SETTLE_S] - SETTLE_S)


def mean_gaps_s(done_s: Floats) -> Floats:
    """Return the mean gap between responses in s for each time step of STEP_S seconds. A gap
    belongs to the time step in which it begins.

    If a long gap spans a whole time step, no gap begins in this step, and the step gets the median
    gap.
    """
    gaps_s, steps = np.diff(done_s), (done_s[:-1] / STEP_S).astype(np.int64)
    counts, sums_s = np.bincount(steps), np.bincount(steps, gaps_s)
    means_s: Floats = np.where(counts > 0, sums_s / np.maximum(counts, 1), np.median(gaps_s))
    return means_s
