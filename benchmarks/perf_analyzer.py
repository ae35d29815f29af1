"""Download NVIDIA's perf_analyzer once, run the program, and read its reports.

The program comes from the last wheel of tritonclient whose binary runs with glibc 2.36. Version and
SHA-256 of the wheel and of two libraries are fixed. The files go into a folder that git ignores.
"""

from __future__ import annotations

import csv
import hashlib
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

NAME = "perf_analyzer 2.46.0"
UNSETTLED = ("stable", "went over the set limit")
"""If perf_analyzer ends with an error and its output contains one of these texts, the server caused
the error."""


class FetchError(RuntimeError):
    """Error: perf_analyzer could not be downloaded or unpacked. The message says what to do."""


@dataclass(frozen=True)
class Package:
    """A file, and the command that downloads the file into the current folder."""

    file: str
    sha256: str
    command: tuple[str, ...]


def _wheel(requirement: str, platform: str) -> tuple[str, ...]:
    options = (
        "--no-deps",
        "--only-binary=:all:",
        "--python-version=3.11",
        f"--platform={platform}",
    )
    return (sys.executable, "-m", "pip", "download", "--quiet", *options, requirement)


CLIENT = Package(
    "tritonclient-2.46.0-py3-none-manylinux1_x86_64.whl",
    "10d2cda89b72599757ef5aeab160c39c6dead64a97871c6156cdf25043f2f655",
    _wheel("tritonclient==2.46.0", "manylinux1_x86_64"),
)
CUDART = Package(
    "nvidia_cuda_runtime_cu12-12.9.79-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
    "25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3",
    _wheel("nvidia-cuda-runtime-cu12==12.9.79", "manylinux2014_x86_64"),
)
BASE64 = Package(
    "libb64-0d_1.2-5+b1_amd64.deb",
    "b0e1d6fde8bdccc18c3884144aede064dc82464dd4777275fa80e74c05583e82",
    ("apt-get", "download", "--quiet=2", "libb64-0d=1.2-5+b1"),
)


@dataclass(frozen=True)
class Level:
    """Report of perf_analyzer for one load (a request rate or a concurrency)."""

    load: float
    p95_ms: float
    p99_ms: float


@dataclass(frozen=True)
class Report:
    """The loads that perf_analyzer found stable and within the threshold, and its run time."""

    levels: tuple[Level, ...]
    wall_s: float


@dataclass(frozen=True)
class PerfAnalyzer:
    """The installed binary, its libraries, and the cores on which it runs."""

    binary: Path
    libraries: tuple[Path, ...]
    cores: tuple[int, ...]

    def run(self, address: str, model: str, options: Sequence[str], folder: Path) -> Report:
        """Run perf_analyzer to its end. The report leaves out the loads that perf_analyzer found
        unstable."""
        table = folder / "perf_analyzer.csv"
        table.unlink(missing_ok=True)
        start_s = time.monotonic()
        with self.running(address, model, [*options, "-f", str(table)]) as process:
            output, _ = process.communicate()
        if process.returncode and not any(message in output for message in UNSETTLED):
            raise RuntimeError(f"perf_analyzer ended with {process.returncode}:\n{output}")
        levels = parse_levels(table.read_text()) if table.exists() else ()
        return Report(levels, time.monotonic() - start_s)

    @contextmanager
    def running(
        self, address: str, model: str, options: Sequence[str], protocol: str = "grpc"
    ) -> Iterator[subprocess.Popen[str]]:
        """Start perf_analyzer, yield its process, and kill the process at the end of the
        context."""
        arguments = ["-m", model, "-i", protocol, "-u", address, *options]
        process = subprocess.Popen(
            pinned(self.cores, [str(self.binary), *arguments]),
            env=os.environ | {"LD_LIBRARY_PATH": os.pathsep.join(map(str, self.libraries))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


def pinned(cores: Sequence[int], command: Sequence[str]) -> list[str]:
    """Return a command that runs `command` on the cores `cores`. The new process pins itself,
    because the program `taskset` needs a further package."""
    pin = f"import os, sys; os.sched_setaffinity(0, {set(cores)});"
    pin += "os.execv(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-c", pin, *command]


def parse_levels(table: str) -> tuple[Level, ...]:
    """Return the levels of a CSV report of perf_analyzer, whose latencies are in microseconds."""
    levels = []
    for row in csv.DictReader(line for line in table.splitlines() if line.strip()):
        load = row.get("Concurrency") or row["Request Rate"]
        p95_ms, p99_ms = (float(row[f"p{q} latency"]) / 1000 for q in (95, 99))
        levels.append(Level(float(load), p95_ms, p99_ms))
    return tuple(levels)


def install(folder: Path, cores: Sequence[int]) -> PerfAnalyzer:
    """Download and unpack missing files, and return perf_analyzer. Raises FetchError."""
    downloads, root = folder / "downloads", folder / "perf_analyzer"
    downloads.mkdir(parents=True, exist_ok=True)
    for package in (CLIENT, CUDART, BASE64):
        fetch(package, downloads)
    binary = root / "tritonclient-2.46.0.data/data/bin/perf_analyzer"
    if not binary.exists():
        for package in (CUDART, CLIENT):
            with zipfile.ZipFile(downloads / package.file) as wheel:
                wheel.extractall(root)
        command = ["dpkg-deb", "-x", str(downloads / BASE64.file), str(root)]
        _do(command, f"Unpack {BASE64.file} into {root} by hand")
        binary.chmod(0o755)
    libraries = (root / "usr/lib/x86_64-linux-gnu", root / "nvidia/cuda_runtime/lib")
    return PerfAnalyzer(binary, libraries, tuple(cores))


def fetch(package: Package, downloads: Path) -> None:
    """Download a package if its file is missing. Raises FetchError if the download fails or the
    file has another SHA-256."""
    path = downloads / package.file
    by_hand = f"Put {package.file} (sha256 {package.sha256}) into {downloads} by hand"
    if not path.exists():
        _do(package.command, by_hand, downloads)
    if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != package.sha256:
        path.unlink(missing_ok=True)
        raise FetchError(
            f"{package.file} has another SHA-256. {by_hand}, and run the benchmark again."
        )


def _do(command: Sequence[str], otherwise: str, folder: Path | None = None) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        problem = done.stderr.strip() if done.returncode else ""
    except OSError as error:
        problem = str(error)
    if problem:
        raise FetchError(
            f"'{' '.join(command)}' failed: {problem}\n"
            f"perf_analyzer needs this file. {otherwise}, and run the benchmark again. To run a"
            " benchmark without perf_analyzer, type for example: make bench BENCH=limit."
        )
