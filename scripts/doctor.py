"""Check before the installation whether this machine meets the requirements of Perseus.

python3 scripts/doctor.py

The script prints one line for each requirement. If this machine does not meet a requirement, the
line says what to do. The exit code is 1 if at least one requirement is missing. The script needs
only Python's standard library.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))  # for modules that need only the standard library
OLDEST, NEWEST = (3, 11), (3, 13)
"""Oldest and newest version of Python that Perseus supports. For these versions, the Triton server
runs Python models, and all packages have wheels."""
GIB = 2**30
MEMORY_GIB, SHARED_GIB, DISK_GIB, FILES = 4, 0.25, 10, 1024
"""What the default study needs at least: memory, shared memory and disk space in GiB, and the
number of files that a process may open at the same time."""


SHARED_ADVICE = "mount -o remount,size=1G /dev/shm (in a container, start it with --shm-size=1g)"


@dataclass(frozen=True)
class Finding:
    """Result of the check of one requirement.

    If the requirement is missing, `advice` says how to meet it. Otherwise, `advice` may warn about
    an effect on the results.
    """

    name: str
    found: str
    advice: str = ""
    missing: bool = False

    def __str__(self) -> str:
        mark = "missing" if self.missing else "note" if self.advice else "ok"
        return f"{mark:8} {self.name:11} {self.found}" + (f": {self.advice}" if self.advice else "")


def main() -> None:
    findings = list(look())
    print("\n".join(map(str, findings)))
    sys.exit(any(finding.missing for finding in findings))


def look() -> Iterator[Finding]:
    """Yield the results of all checks of this machine."""
    has_uv, version = bool(shutil.which("uv")), sys.version_info[:2]
    yield python(version, has_uv)
    if OLDEST <= version <= NEWEST or not has_uv:  # else uv installs another Python
        yield libpython(_library_folders())
    yield virtual_environments(has_uv)
    yield cores(_usable_cores(), _read("/sys/devices/system/cpu/smt/active"))
    yield enough("memory", _memory_gib(), MEMORY_GIB, "use a machine with more memory")
    yield enough("/dev/shm", _free_gib(Path("/dev/shm")), SHARED_GIB, SHARED_ADVICE)
    yield enough(
        "disk", _free_gib(ROOT), DISK_GIB, "delete files, or install the smaller CPU build of torch"
    )
    yield open_files(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    yield governor(_read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
    yield load(os.getloadavg()[0])
    yield gpu(_read("/proc/driver/nvidia/version"))


def python(version: tuple[int, int], has_uv: bool) -> Finding:
    shown = ".".join(map(str, version))
    if OLDEST <= version <= NEWEST:
        return Finding("Python", f"{shown} ({sys.executable})")
    how = (
        "make uses uv to install one of these versions"
        if has_uv
        else "install one of these versions, then type: make PYTHON=python3.13 all"
    )
    return Finding("Python", f"{shown}, but Perseus needs 3.11 to 3.13", how, not has_uv)


def libpython(folders: list[Path]) -> Finding:
    """Check that one of the folders has the shared library of Python. Triton loads this library to
    run models in Python."""
    name = f"libpython{sys.version_info.major}.{sys.version_info.minor}.so.1.0"
    for folder in folders:
        if (folder / name).exists():
            return Finding("libpython", str(folder / name))
    package = name.removesuffix(".so.1.0")
    advice = f"apt-get install {package} (Debian, Ubuntu), or your system's package with {name}"
    return Finding("libpython", name, advice, missing=True)


def virtual_environments(has_uv: bool) -> Finding:
    if has_uv:
        return Finding("venv", "make uses uv for virtual environments")
    if importlib.util.find_spec("ensurepip") and importlib.util.find_spec("venv"):
        return Finding("venv", "Python can make virtual environments")
    return Finding(
        "venv",
        "Python cannot make virtual environments",
        "apt-get install python3-venv",
        missing=True,
    )


def cores(count: int, hyper_threads: str | None) -> Finding:
    shown = f"{count} for this process"
    if count < 2:
        return Finding("cores", shown, "the server and the client need one core each", missing=True)
    if hyper_threads == "1":
        return Finding(
            "cores", shown, "results vary, because two hyper-threads share each physical core"
        )
    return Finding("cores", shown)


def enough(name: str, gib: float, least_gib: float, advice: str) -> Finding:
    """Check whether at least `least_gib` GiB of memory or disk space are free."""
    shown = f"{gib:.1f} GiB free"
    if gib >= least_gib:
        return Finding(name, shown)
    needs = f"but the default study needs at least {least_gib:g} GiB"
    return Finding(name, f"{shown}, {needs}", advice, True)


def open_files(limit: int) -> Finding:
    if limit >= FILES or limit == resource.RLIM_INFINITY:
        return Finding("open files", f"{limit} at most")
    return Finding("open files", f"{limit} at most", f"ulimit -n {FILES}")


def governor(name: str | None) -> Finding:
    if name in (None, "performance"):
        return Finding("governor", name or "not reported (usual in virtual machines)")
    return Finding(
        "governor",
        name,
        "results vary with the clock frequency; cpupower frequency-set -g performance reduces this",
    )


def load(processes: float) -> Finding:
    shown = f"{processes:.1f} processes ran on average in the last minute"
    if processes < 0.5:
        return Finding("load", shown)
    return Finding(
        "load", shown, "end these processes: Perseus repeats every window that they disturb"
    )


def gpu(driver: str | None) -> Finding:
    if driver is None:
        return Finding("GPU", "no NVIDIA GPU; the default study needs none")
    return Finding("GPU", driver.splitlines()[0].removeprefix("NVRM version: "))


def _library_folders() -> list[Path]:
    searched = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return [Path(folder) for folder in (sysconfig.get_config_var("LIBDIR"), *searched) if folder]


def _usable_cores() -> int:
    """Return the number of cores that this process may keep busy. In a container, the CPU quota may
    be lower than the number of visible cores."""
    from perseus.host.cpu_quota import read_quota

    count, quota = len(os.sched_getaffinity(0)), read_quota()
    return count if quota is None else min(count, quota.whole_cores)


def _memory_gib() -> float:
    """Return the free memory in GiB. In a container, the memory limit may leave less free memory
    than the machine has."""
    from perseus.host.memory_limit import free_bytes

    lines = (line.split() for line in (_read("/proc/meminfo") or "").splitlines())
    kib = next((int(line[1]) for line in lines if line[0] == "MemAvailable:"), 0)
    free, of_limit = kib * 1024, free_bytes()
    return (free if of_limit is None else min(free, of_limit)) / GIB


def _free_gib(folder: Path) -> float:
    return shutil.disk_usage(folder).free / GIB if folder.exists() else 0.0


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


if __name__ == "__main__":
    main()
