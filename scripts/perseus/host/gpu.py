"""The GPUs of a server, as NVIDIA's management library (NVML) sees them: are they there, what are
they, what do they do.

A study numbers GPUs as nvidia-smi does, or, where CUDA_VISIBLE_DEVICES is set (a cluster's job,
say), by their place in that list. Where a GPU cannot tell something, it is left out: only a missing
GPU is an error.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psutil
import pynvml

from perseus.host.procfs import process_table, tree

Handle = Any  # of a GPU, from NVML

METRICS = {
    "gpu_utilisation": "share (0..1) of the driver's last sampling period in which a kernel ran",
    "gpu_memory_utilisation": "share (0..1) of that period in which memory was read or written",
    "gpu_memory_used_bytes": "bytes of the GPU's memory in use, whoever uses them",
    "gpu_power_watts": "power of the whole board, W",
    "gpu_energy_joules": "energy of the whole board since the previous sample, J, by the GPU's own "
    "counter (since Volta)",
    "gpu_sm_clock_mhz": "clock of the multiprocessors, MHz",
    "gpu_memory_clock_mhz": "clock of the memory, MHz",
    "gpu_temperature_c": "temperature of the chip, degrees Celsius",
    "gpu_throttle_reasons": "why the clocks are not higher: NVML's bit mask (1 idle, 4 power cap, "
    "8 hardware slowdown, 32 software thermal, 64 hardware thermal, 128 power brake)",
}
"""Metrics of each GPU with their units and meanings."""


class GpuError(RuntimeError):
    """GPUs that a study asks for cannot be had."""


def visible(
    gpus: Sequence[int], environment: Mapping[str, str] = os.environ
) -> list[int] | list[str]:
    """What CUDA and container engines call these GPUs of a study.

    Raises GpuError for one that is not among those of CUDA_VISIBLE_DEVICES.
    """
    listed = environment.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return list(gpus)
    names = [name.strip() for name in listed.split(",") if name.strip()]
    if any(gpu >= len(names) for gpu in gpus):
        raise GpuError(
            f"the study measures on {_named(gpus)}, but CUDA_VISIBLE_DEVICES={listed!r} leaves"
            f" {len(names)} to this process: change the servers' gpus: or that variable"
        )
    return [names[gpu] for gpu in gpus]


def cuda_environment(gpus: Sequence[int]) -> dict[str, str]:
    """Variables with which a program sees these GPUs alone, and numbers them from 0 on."""
    return {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # the order of nvidia-smi; CUDA's own is by speed
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, visible(gpus))),
    }


def require(gpus: Sequence[int]) -> None:
    """Raises GpuError, in one sentence, when this machine does not have all of these GPUs."""
    if gpus:
        with _nvml(gpus):
            _handles(gpus)


def describe(gpus: Sequence[int]) -> dict[str, Any]:
    """Driver, CUDA version, MPS and the GPUs themselves (MIG included); empty for a CPU server.

    Raises GpuError when one of them is missing.
    """
    if not gpus:
        return {}
    with _nvml(gpus):
        handles = _handles(gpus)
        cuda = _asked(pynvml.nvmlSystemGetCudaDriverVersion)
        return {
            "driver": _asked(pynvml.nvmlSystemGetDriverVersion),
            "cuda": None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}",
            "mps": _mps_runs(),
            "gpus": [_describe(handle) for handle in handles],
        }


def locks(gpus: Sequence[int]) -> set[str]:
    """Names of the locks of these GPUs (`host.exclusive`). Raises GpuError as `describe` does."""
    told = [each["uuid"] for each in describe(gpus).get("gpus", ())]
    return {f"perseus-gpu-{uuid or name}" for uuid, name in zip(told, visible(gpus), strict=True)}


def _describe(handle: Handle) -> dict[str, Any]:
    memory = _asked(pynvml.nvmlDeviceGetMemoryInfo, handle)
    limit_mw = _asked(pynvml.nvmlDeviceGetEnforcedPowerLimit, handle)
    capability = _asked(pynvml.nvmlDeviceGetCudaComputeCapability, handle)
    return {
        "name": _asked(pynvml.nvmlDeviceGetName, handle),
        "uuid": _asked(pynvml.nvmlDeviceGetUUID, handle),
        "memory_bytes": None if memory is None else memory.total,
        "compute_capability": None if capability is None else "{}.{}".format(*capability),
        "power_limit_watts": None if limit_mw is None else limit_mw / 1000,
        "max_sm_clock_mhz": _asked(pynvml.nvmlDeviceGetMaxClockInfo, handle, pynvml.NVML_CLOCK_SM),
        "persistence": _flag(_asked(pynvml.nvmlDeviceGetPersistenceMode, handle)),
        "mig": _mig(handle),
    }


def _mig(handle: Handle) -> list[dict[str, Any]] | None:
    """The instances that a GPU is split into by MIG; None when it is not."""
    mode = _asked(pynvml.nvmlDeviceGetMigMode, handle)
    if mode is None or mode[0] != pynvml.NVML_DEVICE_MIG_ENABLE:
        return None
    found = []
    for i in range(_asked(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
        part = _asked(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, i)
        if part is not None:
            memory = _asked(pynvml.nvmlDeviceGetMemoryInfo, part)
            found.append(
                {
                    "name": _asked(pynvml.nvmlDeviceGetName, part),
                    "uuid": _asked(pynvml.nvmlDeviceGetUUID, part),
                    "memory_bytes": None if memory is None else memory.total,
                }
            )
    return found


def _mps_runs() -> bool:
    """Whether a daemon of CUDA's Multi-Process Service runs on this host."""
    names = {process.info["name"] for process in psutil.process_iter(["name"])}
    return "nvidia-cuda-mps-control" in names


class GpuSampler:
    """Samples GPUs from one thread; the energy is the increase since the sample before.

    `cores` are those that NVML's calls run on, which take milliseconds: not the client's.
    Raises GpuError when a GPU is missing. Close it.
    """

    def __init__(self, gpus: Sequence[int], cores: Sequence[int]) -> None:
        self._gpus, self._cores = tuple(gpus), cores
        self._energy_mj: dict[int, int] = {}
        self._handles: dict[int, Handle] = {}
        if gpus:
            require(gpus)
            _start(gpus)
            self._handles = dict(zip(gpus, _handles(gpus), strict=True))

    def sample(self) -> list[tuple[int, str, float]]:
        """(GPU of the study, metric, value) of everything that the GPUs tell now."""
        if not self._gpus:
            return []
        with _on(self._cores):
            return [(gpu, *pair) for gpu in self._gpus for pair in self._sample(gpu)]

    def close(self) -> None:
        """Let go of NVML."""
        if self._handles:
            self._handles = {}
            pynvml.nvmlShutdown()

    def _sample(self, gpu: int) -> Iterator[tuple[str, float]]:
        handle = self._handles[gpu]
        # The counter before the power: reading the power can take the driver tens of milliseconds.
        energy_mj = _asked(pynvml.nvmlDeviceGetTotalEnergyConsumption, handle)
        if energy_mj is not None:
            if gpu in self._energy_mj and energy_mj >= self._energy_mj[gpu]:
                yield "gpu_energy_joules", (energy_mj - self._energy_mj[gpu]) / 1000
            self._energy_mj[gpu] = energy_mj
        used = _asked(pynvml.nvmlDeviceGetUtilizationRates, handle)
        if used is not None:
            yield "gpu_utilisation", used.gpu / 100
            yield "gpu_memory_utilisation", used.memory / 100
        memory = _asked(pynvml.nvmlDeviceGetMemoryInfo, handle)
        if memory is not None:
            yield "gpu_memory_used_bytes", float(memory.used)
        for metric, scale, value in (
            ("gpu_power_watts", 1e-3, _asked(pynvml.nvmlDeviceGetPowerUsage, handle)),
            ("gpu_sm_clock_mhz", 1, _clock(handle, pynvml.NVML_CLOCK_SM)),
            ("gpu_memory_clock_mhz", 1, _clock(handle, pynvml.NVML_CLOCK_MEM)),
            (
                "gpu_temperature_c",
                1,
                _asked(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU),
            ),
            (
                "gpu_throttle_reasons",
                1,
                _asked(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle),
            ),
        ):
            if value is not None:
                yield metric, value * scale


class ForeignWork:
    """What processes other than a server's do on its GPUs.

    `root` is the process id of the server, whose descendants are its own, too; None where it is not
    known. `cores` are as in `GpuSampler`.
    """

    def __init__(self, handles: Sequence[Handle], cores: Sequence[int], root: int | None) -> None:
        self._handles, self._cores, self._root = handles, cores, root
        self._ours: set[int] = set()
        self._ours_are_told = False

    def share(self, start_ns: int) -> float | None:
        """The share (0..1) of the time since `start_ns` (monotonic clock) in which the GPU that was
        the most used by others worked for them.

        None where that is not known: no GPU tells anything since then, or none has ever told of a
        process of the server, so that what it calls processes is not what this host does (NVML has
        the ids of the machine, a container those of its own).
        """
        if self._root is None:
            return None
        since_us = (time.time_ns() - time.monotonic_ns() + start_ns) // 1000
        with _on(self._cores):
            told = [used for each in self._handles if (used := _used(each, since_us))]
        self._ours |= tree(process_table(), self._root)  # those that have ended since remain ours
        if any(not self._ours.isdisjoint(used) for used in told):
            self._ours_are_told = True
        if not told or not self._ours_are_told:
            return None
        return min(1.0, max(sum(used[pid] for pid in used.keys() - self._ours) for used in told))


@contextmanager
def foreign_work(
    gpus: Sequence[int], cores: Sequence[int], root: int | None
) -> Iterator[ForeignWork | None]:
    """`ForeignWork` on these GPUs of a study, while the context is open.

    None without GPUs, and under CUDA's Multi-Process Service, whose own server works for all of its
    clients. Raises GpuError when a GPU is missing.
    """
    if not gpus or _mps_runs():
        yield None
        return
    with _nvml(gpus):
        yield ForeignWork(_handles(gpus), cores, root)


def _used(handle: Handle, since_us: int) -> dict[int, float]:
    """By process, the share of the time since then (Unix time) in which the GPU worked for it.

    Drivers also return places of their buffer that were never filled: what lies in them has no
    time since then, or no share.
    """
    samples = _asked(pynvml.nvmlDeviceGetProcessUtilization, handle, since_us) or ()
    return {
        each.pid: each.smUtil / 100
        for each in samples
        if each.timeStamp > since_us and each.smUtil <= 100
    }


def _clock(handle: Handle, kind: int) -> int | None:
    return _asked(pynvml.nvmlDeviceGetClockInfo, handle, kind)


def _asked(question: Callable[..., Any], *arguments: Any) -> Any:
    """NVML's answer, or None where this GPU or driver has none."""
    try:
        return question(*arguments)
    except pynvml.NVMLError:
        return None


def _flag(value: int | None) -> bool | None:
    return None if value is None else bool(value)


@contextmanager
def _nvml(gpus: Sequence[int]) -> Iterator[None]:
    _start(gpus)
    try:
        yield
    finally:
        pynvml.nvmlShutdown()


def _start(gpus: Sequence[int]) -> None:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise GpuError(
            f"the study measures on {_named(gpus)}, and this machine has no GPU that NVIDIA's"
            f" driver knows of ({error}): run it on a machine with GPUs, or choose servers with"
            " device: cpu"
        ) from None


def _handles(gpus: Sequence[int]) -> list[Handle]:
    try:
        return [_handle(name) for name in visible(gpus)]
    except pynvml.NVMLError as error:
        count = _asked(pynvml.nvmlDeviceGetCount)
        raise GpuError(
            f"the study measures on {_named(gpus)}, and this machine has {count} ({error}):"
            " change the servers' gpus:, or run it on another machine"
        ) from None


def _handle(name: int | str) -> Handle:
    if str(name).isdecimal():
        return pynvml.nvmlDeviceGetHandleByIndex(int(name))
    return pynvml.nvmlDeviceGetHandleByUUID(str(name))


def _named(gpus: Sequence[int]) -> str:
    return f"GPU {gpus[0]}" if len(gpus) == 1 else f"GPUs {', '.join(map(str, gpus))}"


@contextmanager
def _on(cores: Sequence[int]) -> Iterator[None]:
    """Run the body on these CPUs; this thread alone moves. None: wherever it is."""
    before = os.sched_getaffinity(0)
    if cores:
        os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
