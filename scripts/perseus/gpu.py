"""NVIDIA GPUs of this host by NVML: whether they are there, what they are, and what they do.

Figures are NVML's own: power is an average over its sampling interval (some 25 to 100 ms); energy is
the counter that newer GPUs (Volta on) have, from which consumption is taken rather than from power.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import psutil
import pynvml

METRICS = {
    "gpu_*_utilization": "share (0..1) of the last NVML period in which GPU * was busy",
    "gpu_*_memory_used_bytes": "bytes of memory in use on GPU *",
    "gpu_*_power_watts": "power drawn by GPU *",
    "gpu_*_energy_joules": "energy of GPU * since the previous sample, by its counter",
    "gpu_*_sm_clock_mhz": "clock of the multiprocessors of GPU *",
    "gpu_*_memory_clock_mhz": "clock of the memory of GPU *",
    "gpu_*_throttle_reasons": "bit mask of NVML's reasons for lower clocks, 0 for none",
    "gpu_*_temperature_celsius": "temperature of GPU *",
}
"""Every metric of a GPU with its unit and meaning; `*` stands for its id."""


class GpuError(RuntimeError):
    """The GPUs that a server names are not on this machine; the message says what to do."""


def require(server: str, ids: Sequence[int], library: ModuleType | Any = pynvml) -> None:
    """Raises GpuError unless this machine has GPUs with these ids."""
    wanted = f"server {server!r} needs GPU {', '.join(map(str, ids))}"
    advice = "measure on a machine that has them, or choose another server"
    try:
        with _nvml(library):
            count = library.nvmlDeviceGetCount()
    except library.NVMLError as error:
        raise GpuError(f"{wanted}, and NVML finds none here ({error}): {advice}") from error
    if missing := [each for each in ids if each >= count]:
        there = f"{count} GPU{'s' if count != 1 else ''}, numbered from 0"
        raise GpuError(
            f"{wanted}; this machine has {there}, so that {', '.join(map(str, missing))} is"
            f" missing: {advice}"
        )


@contextmanager
def opened(ids: Sequence[int], library: ModuleType | Any = pynvml) -> Iterator[Gpus]:
    """The GPUs with these ids, none for a server without; raises NVML's error without a driver."""
    if not ids:
        yield Gpus((), library)
        return
    with _nvml(library):
        yield Gpus(tuple(ids), library)


@contextmanager
def _nvml(library: Any) -> Iterator[None]:
    library.nvmlInit()
    try:
        yield
    finally:
        library.nvmlShutdown()


class Gpus:
    """Some GPUs of this host. What one of them does not tell is left out."""

    def __init__(self, ids: Sequence[int], library: Any) -> None:
        self._nvml = library
        self._handles = {each: library.nvmlDeviceGetHandleByIndex(each) for each in ids}
        self._energy_mj: dict[int, float] = {}

    def sample(self) -> Iterator[tuple[str, float]]:
        """(metric, value) of each GPU; energy from the second sample on."""
        for each, gpu in self._handles.items():
            n = self._nvml
            reads = {
                "utilization": lambda g: n.nvmlDeviceGetUtilizationRates(g).gpu / 100,
                "memory_used_bytes": lambda g: n.nvmlDeviceGetMemoryInfo(g).used,
                "power_watts": lambda g: n.nvmlDeviceGetPowerUsage(g) / 1000,
                "sm_clock_mhz": lambda g: n.nvmlDeviceGetClockInfo(g, n.NVML_CLOCK_SM),
                "memory_clock_mhz": lambda g: n.nvmlDeviceGetClockInfo(g, n.NVML_CLOCK_MEM),
                "throttle_reasons": n.nvmlDeviceGetCurrentClocksEventReasons,
                "temperature_celsius": lambda g: n.nvmlDeviceGetTemperature(
                    g, n.NVML_TEMPERATURE_GPU
                ),
            }
            for name, read in reads.items():
                value = self._told(read, gpu)
                if value is not None:
                    yield f"gpu_{each}_{name}", float(value)
            energy_mj = self._told(n.nvmlDeviceGetTotalEnergyConsumption, gpu)
            if energy_mj is not None:
                if each in self._energy_mj:
                    spent_mj = energy_mj - self._energy_mj[each]
                    yield f"gpu_{each}_energy_joules", spent_mj / 1000
                self._energy_mj[each] = energy_mj

    def energy_joules(self) -> float:
        """Energy of all of them since the driver was loaded; NaN if one has no counter, or none."""
        counters = [
            self._told(self._nvml.nvmlDeviceGetTotalEnergyConsumption, gpu)
            for gpu in self._handles.values()
        ]
        known = [float(each) for each in counters if each is not None]
        return sum(known) / 1000 if known and len(known) == len(counters) else float("nan")

    def describe(self) -> dict[str, Any]:
        """Driver, CUDA version, and what the GPUs are; empty without any."""
        if not self._handles:
            return {}
        n = self._nvml
        cuda = n.nvmlSystemGetCudaDriverVersion_v2()
        return {
            "driver": _text(n.nvmlSystemGetDriverVersion()),
            "cuda": f"{cuda // 1000}.{cuda % 1000 // 10}",
            "mps": any(p.name() == "nvidia-cuda-mps-control" for p in psutil.process_iter()),
            "gpus": [
                {
                    "id": each,
                    "name": _text(n.nvmlDeviceGetName(gpu)),
                    "memory_bytes": int(n.nvmlDeviceGetMemoryInfo(gpu).total),
                    "mig": self._mig(gpu),
                    "power_limit_watts": self._milli(n.nvmlDeviceGetEnforcedPowerLimit, gpu),
                }
                for each, gpu in self._handles.items()
            ],
        }

    def _mig(self, gpu: Any) -> bool:
        """Whether the GPU is split into instances; older ones cannot be."""
        modes = self._told(self._nvml.nvmlDeviceGetMigMode, gpu)
        return modes is not None and modes[0] == self._nvml.NVML_DEVICE_MIG_ENABLE

    def _milli(self, read: Any, gpu: Any) -> float | None:
        value = self._told(read, gpu)
        return None if value is None else value / 1000

    def _told(self, read: Any, gpu: Any) -> Any:
        try:
            return read(gpu)
        except self._nvml.NVMLError:  # this one cannot, or not now
            return None


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
