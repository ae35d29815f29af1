"""The power of a server's GPUs during a window, from the monitor's samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from perseus.peak.stats import Floats


def window_watts(monitor: Path, windows: Sequence[Mapping[str, Any]], window: int) -> float | None:
    """Mean power of all GPUs of a server in a window, W: of the requests that count.

    monitor: a monitor.parquet. windows: rows of windows.parquet. window: one of them, or -1.
    None when there is no such window, no GPU, or not one sample before and one after the window.
    """
    row = next((row for row in windows if row["window"] == window), None)
    if row is None:
        return None
    begin_ns = row["start_ns"] + 1e9 * row["settle_s"]
    end_ns = row["start_ns"] + 1e9 * row["elapsed_s"]
    table = pq.read_table(monitor, filters=pc.field("gpu").is_valid())
    gpus = [int(gpu) for gpu in pc.unique(table["gpu"]).to_pylist()]
    if not gpus or not end_ns > begin_ns:
        return None
    each = [
        _joules(table.filter(pc.equal(table["gpu"], gpu)), np.array([begin_ns, end_ns]))
        for gpu in gpus
    ]
    known = [joules for joules in each if joules is not None]
    return sum(known) / ((end_ns - begin_ns) / 1e9) if len(known) == len(gpus) else None


def _joules(samples: Any, ends_ns: Floats) -> float | None:
    """Energy of one GPU between two times: by its own counter, else by its power."""
    times_ns, joules = _series(samples, "gpu_energy_joules")
    if not len(times_ns):
        times_ns, watts = _series(samples, "gpu_power_watts")
        steps_s = np.diff(times_ns, prepend=times_ns[:1]) / 1e9
        joules = steps_s * (watts + np.roll(watts, 1)) / 2  # the first step has no length
    if not len(times_ns) or ends_ns[0] < times_ns[0] or ends_ns[1] > times_ns[-1]:
        return None
    total = np.interp(ends_ns, times_ns, np.cumsum(joules))
    return float(total[1] - total[0])


def _series(samples: Any, metric: str) -> tuple[Floats, Floats]:
    """(times in ns, values) of a metric, in the order of time."""
    rows = samples.filter(pc.equal(samples["metric"].cast("string"), metric))
    times_ns, values = rows["time_ns"].to_numpy(), rows["value"].to_numpy()
    order = np.argsort(times_ns)
    return times_ns[order].astype(float), values[order]
