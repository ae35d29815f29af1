"""A stand-in for NVIDIA's management library with two GPUs that exist only in tests."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pynvml
import pytest


class FakeNvml:
    """A stand-in whose `values` are the answers of NVML by function name.

    An answer is a value for all GPUs, or a dict with one value per GPU. If `values` has no answer,
    the GPU does not support the function.
    """

    def __init__(self, count: int = 2) -> None:
        self.opened = 0
        self.uuids = [f"GPU-{i}" for i in range(count)]
        self.values = {
            "nvmlSystemGetDriverVersion": "580.1",
            "nvmlSystemGetCudaDriverVersion": 13000,
            "nvmlDeviceGetName": "Fake",
            "nvmlDeviceGetUUID": dict(enumerate(self.uuids)),
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=16 * 2**30, used=2**30),
            "nvmlDeviceGetCudaComputeCapability": (9, 0),
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=75, memory=50),
            "nvmlDeviceGetTotalEnergyConsumption": {0: 1000, 1: 5000},
            "nvmlDeviceGetPowerUsage": {0: 200_000, 1: 300_000},
            "nvmlDeviceGetTemperature": 40,
            "nvmlDeviceGetCurrentClocksThrottleReasons": 4,
        }

    def init(self) -> None:
        self.opened += 1

    def shutdown(self) -> None:
        self.opened -= 1

    def by_index(self, index: int) -> int:
        if index >= len(self.uuids):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return index

    def by_uuid(self, uuid: str) -> int:
        if uuid not in self.uuids:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return self.uuids.index(uuid)

    def clock(self, _gpu: int, kind: int) -> int:
        return {pynvml.NVML_CLOCK_SM: 1980, pynvml.NVML_CLOCK_MEM: 3201}[kind]

    def answer(self, question: str, *arguments: int):
        assert self.opened > 0, f"{question} before nvmlInit"
        if question not in self.values:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        value = self.values[question]
        return value[arguments[0]] if isinstance(value, dict) else value


def process_sample(pid: int, sm_percent: int, in_s: float = 60.0) -> SimpleNamespace:
    """Return NVML's sample of a process, with a time stamp `in_s` seconds from now."""
    at_us = round((time.time() + in_s) * 1e6)
    return SimpleNamespace(pid=pid, timeStamp=at_us, smUtil=sm_percent)


def install(monkeypatch: pytest.MonkeyPatch, nvml: FakeNvml) -> FakeNvml:
    """Replace every function of NVML by an answer of `nvml`."""
    for name in dir(pynvml):
        if name.startswith("nvml") and callable(getattr(pynvml, name)):
            monkeypatch.setattr(pynvml, name, lambda *a, name=name: nvml.answer(name, *a))
    monkeypatch.setattr(pynvml, "nvmlInit", nvml.init)
    monkeypatch.setattr(pynvml, "nvmlShutdown", nvml.shutdown)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: len(nvml.uuids))
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", nvml.by_index)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByUUID", nvml.by_uuid)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetClockInfo", nvml.clock)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return nvml
