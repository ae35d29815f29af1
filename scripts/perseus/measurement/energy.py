"""Compute the electrical power of a server's GPUs and of its host during a window, from the
samples of the monitor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from perseus.host import powercap
from perseus.peak.stats import Floats

Windows = Sequence[Mapping[str, Any]]


def window_watts(monitor: Path, windows: Windows, window: int) -> float | None:
    """Return the mean power of all GPUs of a server together in a window, in watts. The mean
    excludes the settling time of the window.

    `monitor` is the path of monitor.parquet, `windows` contains rows of windows.parquet, and
    `window` is the number of the window, or -1 for no window. The power is None if `window` is -1,
    if the server has no GPU, or if the monitor has no sample before or after the window.
    """
    ends_ns = _ends_ns(windows, window)
    if ends_ns is None:
        return None
    table = pq.read_table(monitor, filters=pc.field("gpu").is_valid())
    gpus = [int(gpu) for gpu in pc.unique(table["gpu"]).to_pylist()]
    each = [_watts(_gpu_joules(table.filter(pc.equal(table["gpu"], gpu))), ends_ns) for gpu in gpus]
    known = [watts for watts in each if watts is not None]
    return sum(known) if known and len(known) == len(gpus) else None


def host_watts(monitor: Path, windows: Windows, window: int) -> float | None:
    """Return the mean power of the host's processors and memory in a window, in watts. The mean
    excludes the settling time of the window.

    Return None if the host does not report the power.
    """
    ends_ns = _ends_ns(windows, window)
    if ends_ns is None:
        return None
    metric = pc.field("metric").cast("string") == powercap.METRIC
    return _watts(_series(pq.read_table(monitor, filters=metric), powercap.METRIC), ends_ns)


def _ends_ns(windows: Windows, window: int) -> Floats | None:
    """Return the end of the settling time and the end of the window, in ns. Return None if the
    window does not exist, or if it ended during its settling time."""
    row = next((row for row in windows if row["window"] == window), None)
    if row is None or not row["elapsed_s"] > row["settle_s"]:
        return None
    return np.array([row["start_ns"] + 1e9 * row[end] for end in ("settle_s", "elapsed_s")])


def _gpu_joules(samples: Any) -> tuple[Floats, Floats]:
    """Return the times (in ns) of the samples of one GPU, and the energies (in joules).

    Each energy is the energy that the GPU used since the previous sample. If the GPU has no energy
    counter, the function computes the energies from the power of the GPU in the samples.
    """
    times_ns, joules = _series(samples, "gpu_energy_joules")
    if len(times_ns):
        return times_ns, joules
    times_ns, watts = _series(samples, "gpu_power_watts")
    steps_s = np.diff(times_ns, prepend=times_ns[:1]) / 1e9
    # For the first sample, np.roll yields a wrong power, but the time before this sample is 0.
    return times_ns, steps_s * (watts + np.roll(watts, 1)) / 2


def _watts(increases: tuple[Floats, Floats], ends_ns: Floats) -> float | None:
    """Return the mean power in watts between the two times in `ends_ns`. Return None if the samples
    do not cover the whole interval."""
    times_ns, joules = increases
    if not len(times_ns) or ends_ns[0] < times_ns[0] or ends_ns[1] > times_ns[-1]:
        return None
    begin, end = np.interp(ends_ns, times_ns, np.cumsum(joules))
    return float((end - begin) / (np.diff(ends_ns)[0] / 1e9))


def _series(samples: Any, metric: str) -> tuple[Floats, Floats]:
    """Return the times in ns and the values of a metric, sorted by time."""
    rows = samples.filter(pc.equal(samples["metric"].cast("string"), metric))
    times_ns, values = rows["time_ns"].to_numpy(), rows["value"].to_numpy()
    order = np.argsort(times_ns)
    return times_ns[order].astype(float), values[order]
