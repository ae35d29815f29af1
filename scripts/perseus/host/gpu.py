"""Check, describe and sample the GPUs of a server with NVIDIA's management library (NVML).

A study numbers the GPUs as nvidia-smi does. If CUDA_VISIBLE_DEVICES is set (for example in a
cluster job), the number of a GPU is its position in CUDA_VISIBLE_DEVICES, counted from 0.

Some GPUs do not report all values. A description contains None for a missing value. A sample does
not contain missing values. If a GPU is missing, the functions of this module raise GpuError.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psutil
import pynvml

from perseus.host.procfs import process_table, tree

Handle = Any  # NVML's handle of a GPU

METRICS = {
    "gpu_utilisation": "share (0..1) of the time in which a kernel ran on the GPU, in the driver's"
    " last sampling period",
    "gpu_memory_utilisation": "share (0..1) of the time in which the GPU read or wrote its memory,"
    " in the driver's last sampling period",
    "gpu_memory_used_bytes": "GPU memory that all processes together use, bytes",
    "gpu_power_watts": "power of the whole GPU board, W",
    "gpu_energy_joules": (
        "energy of the whole GPU board since the previous sample, J, read from the GPU's own"
        " counter (only GPUs of the Volta generation and later have this counter)"
    ),
    "gpu_sm_clock_mhz": "clock frequency of the multiprocessors of the GPU, MHz",
    "gpu_memory_clock_mhz": "clock frequency of the GPU memory, MHz",
    "gpu_temperature_c": "temperature of the GPU chip, degrees Celsius",
    "gpu_throttle_reasons": "reasons for reduced clock frequencies, as the sum of NVML's bits:"
    " 1 idle, 4 power cap, 8 hardware slowdown, 32 software thermal, 64 hardware thermal, 128 power"
    " brake",
}
"""Metrics of each GPU, with their units and meanings."""


class GpuError(RuntimeError):
    """Error: this machine lacks a GPU that the study needs. The message says what to do."""


def visible(gpus: Sequence[int]) -> list[int] | list[str]:
    """Return names that CUDA and container engines accept for the GPUs of a study.

    `gpus` has the numbers of the GPUs in the study (0, 1, ...). If CUDA_VISIBLE_DEVICES is set,
    number i means entry i of CUDA_VISIBLE_DEVICES, counted from 0. Raises GpuError for a number
    beyond the last entry.
    """
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return list(gpus)
    names = [name.strip() for name in listed.split(",") if name.strip()]
    if any(gpu >= len(names) for gpu in gpus):
        raise GpuError(
            f"the study measures on {_listed(gpus)}, but the number of GPUs in"
            f" CUDA_VISIBLE_DEVICES={listed!r} is {len(names)}: change `gpus` of the servers, or"
            " CUDA_VISIBLE_DEVICES"
        )
    return [names[gpu] for gpu in gpus]


def cuda_environment(gpus: Sequence[int]) -> dict[str, str]:
    """Return environment variables with which a program sees only these GPUs of a study.

    The program sees these GPUs with the numbers 0, 1, 2, ...
    """
    return {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # the order of nvidia-smi, not the fastest first
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, visible(gpus))),
    }


def require(gpus: Sequence[int]) -> None:
    """Raise GpuError if this machine lacks one of these GPUs."""
    if gpus:
        with _nvml(gpus):
            _handles(gpus)


def describe(gpus: Sequence[int]) -> dict[str, Any]:
    """Return a description of the driver and of these GPUs of a study; empty without GPUs.

    The result has the versions of the driver and of CUDA, a description of each GPU, and whether
    CUDA's Multi-Process Service (MPS) runs. Raises GpuError if a GPU is missing.
    """
    if not gpus:
        return {}
    with _nvml(gpus):
        handles = _handles(gpus)
        cuda = _query(pynvml.nvmlSystemGetCudaDriverVersion)
        return {
            "driver": _query(pynvml.nvmlSystemGetDriverVersion),
            "cuda": None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}",
            "mps": _mps_runs(),
            "gpus": [_describe(handle) for handle in handles],
        }


def locks(gpus: Sequence[int]) -> set[str]:
    """Return the names of the locks that reserve these GPUs (see `host.exclusive`).

    Raises GpuError if a GPU is missing.
    """
    uuids = [each["uuid"] for each in describe(gpus).get("gpus", ())]
    return {f"perseus-gpu-{uuid or name}" for uuid, name in zip(uuids, visible(gpus), strict=True)}


def _describe(handle: Handle) -> dict[str, Any]:
    memory = _query(pynvml.nvmlDeviceGetMemoryInfo, handle)
    limit_mw = _query(pynvml.nvmlDeviceGetEnforcedPowerLimit, handle)
    capability = _query(pynvml.nvmlDeviceGetCudaComputeCapability, handle)
    return {
        "name": _query(pynvml.nvmlDeviceGetName, handle),
        "uuid": _query(pynvml.nvmlDeviceGetUUID, handle),
        "memory_bytes": None if memory is None else memory.total,
        "compute_capability": None if capability is None else "{}.{}".format(*capability),
        "power_limit_watts": None if limit_mw is None else limit_mw / 1000,
        "max_sm_clock_mhz": _query(pynvml.nvmlDeviceGetMaxClockInfo, handle, pynvml.NVML_CLOCK_SM),
        "persistence": _flag(_query(pynvml.nvmlDeviceGetPersistenceMode, handle)),
        "mig": _mig(handle),
    }


def _mig(handle: Handle) -> list[dict[str, Any]] | None:
    mode = _query(pynvml.nvmlDeviceGetMigMode, handle)
    if mode is None or mode[0] != pynvml.NVML_DEVICE_MIG_ENABLE:
        return None
    found = []
    for i in range(_query(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
        part = _query(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, i)
        if part is not None:
            memory = _query(pynvml.nvmlDeviceGetMemoryInfo, part)
            found.append(
                {
                    "name": _query(pynvml.nvmlDeviceGetName, part),
                    "uuid": _query(pynvml.nvmlDeviceGetUUID, part),
                    "memory_bytes": None if memory is None else memory.total,
                }
            )
    return found


def _mps_runs() -> bool:
    names = {process.info["name"] for process in psutil.process_iter(["name"])}
    return "nvidia-cuda-mps-control" in names


class GpuSampler:
    """Reads the METRICS of GPUs, such as utilisation and power, in each call of `sample`.

    Use each sampler in one thread only, and call `close` at the end. `sample` calls NVML on the
    CPUs `cores`. A call of NVML takes milliseconds, so choose CPUs that the client does not use.
    Raises GpuError if a GPU is missing.
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
        """Return all values that the GPUs report now.

        Each value is a tuple (number of the GPU in the study, name of the metric, value).
        """
        if not self._gpus:
            return []
        with _on(self._cores):
            return [(gpu, *pair) for gpu in self._gpus for pair in self._sample(gpu)]

    def close(self) -> None:
        """Release NVML. Do not call `sample` afterwards."""
        if self._handles:
            self._handles = {}
            pynvml.nvmlShutdown()

    def _sample(self, gpu: int) -> Iterator[tuple[str, float]]:
        handle = self._handles[gpu]
        # Read the energy before the power, since the driver may need tens of milliseconds to read
        # the power.
        energy_mj = _query(pynvml.nvmlDeviceGetTotalEnergyConsumption, handle)
        if energy_mj is not None:
            if gpu in self._energy_mj and energy_mj >= self._energy_mj[gpu]:
                yield "gpu_energy_joules", (energy_mj - self._energy_mj[gpu]) / 1000
            self._energy_mj[gpu] = energy_mj
        used = _query(pynvml.nvmlDeviceGetUtilizationRates, handle)
        if used is not None:
            yield "gpu_utilisation", used.gpu / 100
            yield "gpu_memory_utilisation", used.memory / 100
        memory = _query(pynvml.nvmlDeviceGetMemoryInfo, handle)
        if memory is not None:
            yield "gpu_memory_used_bytes", float(memory.used)
        for metric, scale, value in (
            ("gpu_power_watts", 1e-3, _query(pynvml.nvmlDeviceGetPowerUsage, handle)),
            ("gpu_sm_clock_mhz", 1, _clock(handle, pynvml.NVML_CLOCK_SM)),
            ("gpu_memory_clock_mhz", 1, _clock(handle, pynvml.NVML_CLOCK_MEM)),
            (
                "gpu_temperature_c",
                1,
                _query(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU),
            ),
            (
                "gpu_throttle_reasons",
                1,
                _query(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle),
            ),
        ):
            if value is not None:
                yield metric, value * scale


class OtherGpuWork:
    """Measures the share of the time in which the GPUs of a server work for other processes.

    `root` is the process id of the server; None if unknown. All descendants of the process `root`
    also belong to the server. `share` calls NVML on the CPUs `cores`.
    """

    def __init__(self, handles: Sequence[Handle], cores: Sequence[int], root: int | None) -> None:
        self._handles, self._cores, self._root = handles, cores, root
        self._server_pids: set[int] = set()
        self._server_was_reported = False

    def share(self, start_ns: int) -> float | None:
        """Return the share (0..1) of the time in which a GPU worked for other processes.

        Other processes are all processes outside the server. The share refers to the time from
        `start_ns` on the monotonic clock to now. With several GPUs, the largest share counts.

        The result is None if the process id of the server is unknown, if no GPU reports any
        process, or if no GPU has ever reported a process of the server. The last case always occurs
        in a container with its own process ids, because NVML reports the process ids of the host.
        """
        if self._root is None:
            return None
        since_us = (time.time_ns() - time.monotonic_ns() + start_ns) // 1000
        with _on(self._cores):
            reported = [used for each in self._handles if (used := _used(each, since_us))]
        # Earlier process ids remain in the set, since NVML also reports ended processes.
        self._server_pids |= tree(process_table(), self._root)
        if any(not self._server_pids.isdisjoint(used) for used in reported):
            self._server_was_reported = True
        if not reported or not self._server_was_reported:
            return None
        return min(
            1.0, max(sum(used[pid] for pid in used.keys() - self._server_pids) for used in reported)
        )


@contextmanager
def other_gpu_work(
    gpus: Sequence[int], cores: Sequence[int], root: int | None
) -> Iterator[OtherGpuWork | None]:
    """Yield an `OtherGpuWork` for these GPUs of a study; None without GPUs.

    The result is also None if CUDA's Multi-Process Service (MPS) runs. With MPS, a single process
    uses the GPU on behalf of all other processes, so NVML cannot distinguish the server from other
    processes. Raises GpuError if a GPU is missing.
    """
    if not gpus or _mps_runs():
        yield None
        return
    with _nvml(gpus):
        yield OtherGpuWork(_handles(gpus), cores, root)


def _used(handle: Handle, since_us: int) -> dict[int, float]:
    """Return the share of the time in which each process used the GPU, by process id.

    The share refers to the time from `since_us` (Unix time) to now. The driver also returns unused
    entries of its buffer. The function ignores entries with a time before `since_us` or a share
    above 1, because these entries are unused.
    """
    samples = _query(pynvml.nvmlDeviceGetProcessUtilization, handle, since_us) or ()
    return {
        each.pid: each.smUtil / 100
        for each in samples
        if each.timeStamp > since_us and each.smUtil <= 100
    }


def _clock(handle: Handle, kind: int) -> int | None:
    return _query(pynvml.nvmlDeviceGetClockInfo, handle, kind)


def _query(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of NVML, and return its result; None if NVML reports an error.

    NVML reports an error, for example, if a GPU does not support the function.
    """
    try:
        return function(*arguments)
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
            f"the study measures on {_listed(gpus)}, but NVIDIA's driver finds no GPU on this"
            f" machine ({error}): run the study on a machine with GPUs, or choose servers with"
            " `device: cpu`"
        ) from None


def _handles(gpus: Sequence[int]) -> list[Handle]:
    try:
        return [_handle(name) for name in visible(gpus)]
    except pynvml.NVMLError as error:
        count = _query(pynvml.nvmlDeviceGetCount)
        raise GpuError(
            f"the study measures on {_listed(gpus)}, but the number of GPUs on this machine is"
            f" {count} ({error}): change `gpus` of the servers, or run the study on another machine"
        ) from None


def _handle(name: int | str) -> Handle:
    if str(name).isdecimal():
        return pynvml.nvmlDeviceGetHandleByIndex(int(name))
    return pynvml.nvmlDeviceGetHandleByUUID(str(name))


def _listed(gpus: Sequence[int]) -> str:
    return f"GPU {gpus[0]}" if len(gpus) == 1 else f"GPUs {', '.join(map(str, gpus))}"


@contextmanager
def _on(cores: Sequence[int]) -> Iterator[None]:
    """Pin this thread to `cores` while the context is open. If `cores` is empty, do nothing."""
    before = os.sched_getaffinity(0)
    if cores:
        os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
