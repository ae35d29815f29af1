"""Read the monitor samples of a cell: the utilisation of server and client over time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd

from perseus.results.records import Record


@dataclass(frozen=True)
class Metric:
    """A metric of the monitor that becomes a line in a panel.

    The function `samples` divides the recorded values by `unit`. If `per_second` is true, a
    recorded value is an amount since the previous sample, and the function also divides the value
    by the time since the previous sample. If `mean` is true, the function averages the values of
    several GPUs; otherwise, it adds them.
    """

    name: str
    unit: float = 1.0
    per_second: bool = False
    of_client: bool = False
    mean: bool = False

    @property
    def who(self) -> str:
        return "client" if self.of_client else "server"


QUANTITIES: Final = {
    "CPU (cores)": (Metric("server_cpu_cores"), Metric("client_cpu_cores", of_client=True)),
    "GPU (share)": (Metric("gpu_utilisation", mean=True),),
    "memory (GiB)": (Metric("server_rss_bytes", 2**30),),
    "network (MB/s)": (Metric("network_received_bytes", 1e6, per_second=True),),
    "queue (requests)": (Metric("nv_inference_pending_request_count"),),
}
"""Metrics of each quantity. A key is the title of the panel of the quantity."""

COLUMNS: Final = ["cell", "quantity", "metric", "who", "time_s", "value"]


def samples(folder: Path) -> Iterator[pd.DataFrame]:
    """Yield a table with the columns COLUMNS for each metric that has samples.

    If several GPUs or tenants have a metric, a value is the sum of their values or, if
    `Metric.mean` is true, the mean. The column `time_s` has the seconds since the start of the
    cell.
    """
    start_ns = Record.read(folder).started.monotonic_ns
    monitored = pd.read_parquet(folder / "monitor.parquet")
    for quantity, metrics in QUANTITIES.items():
        for metric in metrics:
            by_time = monitored[monitored["metric"] == metric.name].groupby("time_ns")["value"]
            values = (by_time.mean() if metric.mean else by_time.sum()) / metric.unit
            time_s = (values.index.to_series() - start_ns) / 1e9
            if metric.per_second:
                values = values / time_s.diff()
            frame = pd.DataFrame({"time_s": time_s, "value": values}).dropna()
            if len(frame):
                named = {"cell": folder.name, "quantity": quantity, "metric": metric.name}
                yield frame.assign(**named, who=metric.who)[COLUMNS]
