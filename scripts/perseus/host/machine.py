"""Describe the machine and the versions of the software with which Perseus measures."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from perseus.host.cpu_quota import read_quota
from perseus.host.topology import Topology, read_topology

PACKAGES = (
    "grpcio",
    "hpack",
    "numpy",
    "nvidia-pytriton",
    "onnxruntime",
    "openvino",
    "scipy",
    "snakemake",
    "torch",
    "torchvision",
    "tritonclient",
)


def describe(
    server_cores: Sequence[int], client_cores: Sequence[int], topology: Topology | None = None
) -> dict[str, Any]:
    """Describe this machine for the record of a measurement.

    The result has the CPU, the memory, the operating system and the versions of the software. It
    also has the cores and NUMA nodes of the server and of the client. If server and client share
    physical cores, the result lists the CPUs of these cores.
    """
    topology = topology or read_topology()
    return {
        "cpu": _cpu_name(),
        "cpus": os.cpu_count(),
        "cpu_quota_cores": quota.cores if (quota := read_quota()) else None,
        "server_cores": list(server_cores),
        "client_cores": list(client_cores),
        "topology": {
            "tells_siblings": topology.tells_siblings,
            "shared_by_server_and_client": sorted(
                cpu
                for cpu in (*server_cores, *client_cores)
                if {*topology.core_of(cpu)} & {*server_cores}
                and {*topology.core_of(cpu)} & {*client_cores}
            ),
            "server_nodes": sorted({topology.node_of(cpu) for cpu in server_cores}),
            "client_nodes": sorted({topology.node_of(cpu) for cpu in client_cores}),
        },
        "cpu_governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "packages": {name: package_version(name) for name in PACKAGES},
    }


def _cpu_name() -> str:
    lines = (_read("/proc/cpuinfo") or "").splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


@cache
def package_version(package: str) -> str | None:
    """Return the version of an installed package; None if the package is not installed.

    Some packages have a second build for GPUs, such as onnxruntime-gpu. If only the build for GPUs
    is installed, the function returns the version of this build.
    """
    for name in (package, f"{package}-gpu"):
        with suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(name)
    return None
