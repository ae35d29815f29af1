"""NVML of a machine with two GPUs, of which the second is old: no energy counter, no MIG."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace


class NVMLError(Exception):
    """As pynvml's."""


@dataclass
class FakeNvml:
    """The functions of pynvml that Perseus calls. `energy_mj` is the first GPU's counter."""

    gpus: int = 2
    driver: bool = True
    energy_mj: int = 5_000_000
    opened: int = 0
    NVMLError: type[Exception] = field(default=NVMLError)
    NVML_CLOCK_SM: int = 1
    NVML_CLOCK_MEM: int = 2
    NVML_TEMPERATURE_GPU: int = 0
    NVML_DEVICE_MIG_ENABLE: int = 1

    def nvmlInit(self) -> None:
        if not self.driver:
            raise NVMLError("Driver Not Loaded")
        self.opened += 1

    def nvmlShutdown(self) -> None:
        self.opened -= 1

    def nvmlDeviceGetCount(self) -> int:
        return self.gpus

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUtilizationRates(self, gpu: int) -> SimpleNamespace:
        return SimpleNamespace(gpu=87)

    def nvmlDeviceGetMemoryInfo(self, gpu: int) -> SimpleNamespace:
        return SimpleNamespace(used=3 * 2**30, total=16 * 2**30)

    def nvmlDeviceGetPowerUsage(self, gpu: int) -> int:
        return 65_500

    def nvmlDeviceGetClockInfo(self, gpu: int, clock: int) -> int:
        return {1: 1590, 2: 5001}[clock]

    def nvmlDeviceGetCurrentClocksEventReasons(self, gpu: int) -> int:
        return 4

    def nvmlDeviceGetTemperature(self, gpu: int, sensor: int) -> int:
        return 61

    def nvmlDeviceGetTotalEnergyConsumption(self, gpu: int) -> int:
        if gpu == 1:
            raise NVMLError("Not Supported")
        return self.energy_mj

    def nvmlDeviceGetMigMode(self, gpu: int) -> list[int]:
        if gpu == 1:
            raise NVMLError("Not Supported")
        return [1, 1]

    def nvmlDeviceGetEnforcedPowerLimit(self, gpu: int) -> int:
        return 70_000

    def nvmlDeviceGetName(self, gpu: int) -> str:
        return "Tesla T4"

    def nvmlSystemGetDriverVersion(self) -> bytes:
        return b"580.95"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return 13000
