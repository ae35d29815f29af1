"""Sample the host, the server and Triton's counters once a second during a measurement.

    with MonitorFile(path) as file, Monitor(file, server, server_cores=[0], client_cores=[1]):
        measure()

Each row contains the value of one metric at one time. If the metric describes a tenant, the row
also contains the name of the tenant. If the server has ended, or does not send its metrics in time,
the file has no rows for the missing values, and the measurement continues.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from perseus.host.files import partial_path, seal
from perseus.host.signals import signals_deferred
from perseus.measurement.monitor_schema import MONITOR_SCHEMA
from perseus.measurement.samples import Row, Sampler
from perseus.serving.running_server import RunningServer

ROW_GROUP_ROWS = 10_000


class MonitorFile:
    """A context manager that writes the file monitor.parquet.

    Several monitors (one per server) may write to the file, one after another. The file gets its
    final name at the end of the context, even after an exception. Until then, the file has the name
    that `host.files.partial_path` returns.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Self:
        self._partial = partial_path(self._path)
        as_table([])  # the first conversion takes 0.3 s of CPU time, so do it before measurements
        self._writer = pq.ParquetWriter(self._partial, MONITOR_SCHEMA, compression="zstd")
        return self

    def __exit__(self, *exc: object) -> None:
        with signals_deferred():
            self._writer.close()
            seal(self._partial)
            self._partial.replace(self._path)

    def write(self, rows: Sequence[Row]) -> None:
        self._writer.write_table(as_table(rows))


def as_table(rows: Sequence[Row]) -> pa.Table:
    """Return the rows as a table of monitor.parquet."""
    columns = zip(*rows, strict=True) if rows else [()] * len(MONITOR_SCHEMA)
    arrays = [
        pa.array(column, field.type) for column, field in zip(columns, MONITOR_SCHEMA, strict=True)
    ]
    return pa.table(arrays, schema=MONITOR_SCHEMA)


class Monitor:
    """Context manager that takes samples in a thread of the measuring process.

    Samples are due at start + k x period on the monotonic clock. A late sample does not delay the
    next sample. If a sample is due while the monitor still takes another sample, the monitor skips
    the sample that is due.

    Args:
        file: receives the samples.
        server: runs on this host or on another host.
        server_cores: CPU ids of the server on this host (may be empty).
        client_cores: CPU ids of the client.
        period_s: seconds between two samples.
        gpus: GPUs of the server on this host.

    Raises:
        GpuError: a GPU is missing (raised by the constructor).
        Exception: an error ended the thread of the monitor. The monitor raises this error at the
            end of the context, unless the body of the context has itself raised an error.
    """

    def __init__(
        self,
        file: MonitorFile,
        server: RunningServer,
        server_cores: Sequence[int],
        client_cores: Sequence[int],
        period_s: float = 1.0,
        gpus: Sequence[int] = (),
    ) -> None:
        self._file, self._period_s = file, period_s
        self._sampler = Sampler(server, server_cores, client_cores, gpus)
        self._leaving = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="monitor", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with signals_deferred():
            self._leaving.set()
            self._thread.join()
        if self._failure is not None and error is None:
            raise self._failure

    def _run(self) -> None:
        rows: list[Row] = []
        try:
            self._sampler.sample()  # increases begin at this first sample
            due_s = time.monotonic() + self._period_s
            while not self._leaving.wait(max(0.0, due_s - time.monotonic())):
                rows += self._sampler.sample()
                missed = int(max(0.0, time.monotonic() - due_s) / self._period_s)
                due_s += (1 + missed) * self._period_s
                if len(rows) >= ROW_GROUP_ROWS:
                    self._file.write(rows)
                    rows = []
            rows += self._sampler.sample()  # with a last sample, the increases sum to the total
            self._file.write(rows)
        except Exception as failure:
            self._failure = failure
        finally:
            self._sampler.close()
