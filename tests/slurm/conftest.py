"""A study on a one-node Slurm cluster, and fixtures for its tests."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import one_node
import psutil
import pytest
import yaml
from workflow_files import copy_workflow

CPUS = len(os.sched_getaffinity(0))
SMOKE = ["--configfile", "config/studies/smoke.yaml"]
# Adapt the resources of a profile for nodes of 16 CPUs to the CPUs of this machine.
NODE = ["--set-threads", f"ceiling={CPUS}", f"measure={CPUS}", "--resources", "mem_mb=4000"]
# Ask each second whether jobs have ended. By default, the Slurm executor waits ten seconds longer
# after each request without an ended job.
SNAKEMAKE = """
from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

RemoteExecutor.next_seconds_between_status_checks = property(lambda self: 1, lambda self, _: None)
main()
"""
SOON = {
    "slurm": ["--slurm-init-seconds-before-status-checks", "1", "--slurm-no-account"],
    "cluster-generic": ["--seconds-between-status-checks", "1"],
}
ALONE = {
    "name": "squeezenet1_1",
    "servers": ["cpu1"],
    "tenants": [{"model": "squeezenet1_1"}],
    "experiments": [{"kind": "concurrency", "concurrencies": [1, 4]}],
}
CELL = "cpu1.squeezenet1_1.concurrency.r1"  # the shorter of the two cells of the study
RAW = f"results/smoke/raw/{CELL}"


@pytest.fixture(scope="session")
def slurm() -> Iterator[None]:
    with one_node.one_node():
        yield


@pytest.fixture(scope="session")
def finished(slurm, tmp_path_factory) -> Path:
    """Return the folder of a complete run with profiles/slurm. Tests only read this folder.

    The study is smoke, reduced to one model and two cells. For Slurm, more models and other kinds
    of cells make no difference.
    """
    root = copy_workflow(tmp_path_factory.mktemp("smoke"))
    configure(root, ALONE)
    process = start(root, "slurm", "all")
    assert process.wait(900) == 0, log_text(root)
    return root


def configure(root: Path, scenario: dict[str, Any]) -> None:
    """Reduce the study to one model and one scenario."""
    path = root / "config" / "studies" / "smoke.yaml"
    study = yaml.safe_load(path.read_text())
    study["models"], study["scenarios"] = study["models"][:1], [scenario]
    path.write_text(yaml.safe_dump(study))


def start(root: Path, profile: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start Snakemake with a cluster profile, in its own session as from a terminal."""
    command = [sys.executable, "-c", SNAKEMAKE, "--profile", f"profiles/{profile}", *arguments]
    with (root / "output.txt").open("w") as output:
        return subprocess.Popen(
            [*command, *SMOKE, *NODE, *SOON[profile], "--latency-wait", "5"],
            cwd=root,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def log_text(root: Path) -> str:
    return (root / "output.txt").read_text()


def locally(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Snakemake without a cluster."""
    command = [sys.executable, "-m", "snakemake", "--cores", "4", *arguments, *SMOKE]
    return subprocess.run(
        command,
        cwd=root,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
    )


def until(condition: Callable[[], object], tell: Callable[[], object], limit_s: float = 60) -> None:
    """Wait until `condition()` is true. After `limit_s` seconds, fail with the result of `tell` as
    the message."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, tell()
        time.sleep(0.2)


def left_behind(root: Path) -> list[str]:
    """Return the processes and the shared memory that jobs and servers have left.

    The namespaces of the test contain only processes of the test.
    """
    found = [str(path) for path in Path("/dev/shm").glob("perseus-*")]
    for process in psutil.process_iter(["name", "cmdline"]):
        words = " ".join(process.info["cmdline"] or [])
        names = ("slurmstepd", "tritonserver", "triton_python_backend_stub")
        if process.info["name"] in names or str(root) in words:
            found.append(f"{process.info['name']}: {words}")
    return found
