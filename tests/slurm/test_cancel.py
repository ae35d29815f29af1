"""A cancelled measurement leaves nothing on its node. The same command measures the cell again."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import one_node
import psutil
import pytest
from conftest import ALONE, CELL, RAW, configure, left_behind, locally, log_text, start, until

LOG = f"logs/smoke/measure/{CELL}.log"


@pytest.fixture(params=["slurm", "cluster-generic"])
def profile(request) -> str:
    return request.param


@pytest.fixture
def unmeasured(finished, tmp_path) -> Path:
    """Remove one cell from a copy of the finished study.

    The experiment of the cell gets more levels, so that the cell cannot end before the test cancels
    it, even on a slow host.
    """
    root = tmp_path / "unmeasured"
    shutil.copytree(finished, root, symlinks=True)
    shutil.rmtree(root / RAW)
    (root / LOG).unlink()
    levels = [1, 2, 3, 4, 6, 8, 12, 16]
    configure(root, ALONE | {"experiments": [{"kind": "concurrency", "concurrencies": levels}]})
    return root


def start_measuring(root: Path, profile: str):
    """Start to measure the cell; return when its server is under load."""
    process = start(root, profile, RAW)
    until(client_runs, lambda: log_text(root))
    assert any("tritonserver" in found for found in left_behind(root))
    return process


def client_runs() -> bool:
    processes = psutil.process_iter(["cmdline"])
    return any("sender.main" in " ".join(each.info["cmdline"] or []) for each in processes)


def running() -> list[str]:
    return one_node.output("squeue", "--noheader", "--format=%A").split()


def assert_nothing_left(root: Path) -> None:
    """Wait until Slurm has ended all jobs, and a moment longer for the processes of Slurm."""
    until(lambda: not running(), running)
    until(lambda: not left_behind(root), lambda: left_behind(root), 5)


def test_a_cancelled_measurement_leaves_nothing_and_is_measured_by_the_same_command(
    unmeasured, profile
):
    process = start_measuring(unmeasured, profile)
    (job,) = running()
    one_node.output("scancel", job)
    assert process.wait(60) == 1, log_text(unmeasured)
    assert_nothing_left(unmeasured)
    assert not (unmeasured / RAW / "record.json").exists()
    if profile == "slurm":  # the other profile submits the same jobs
        assert start(unmeasured, profile, RAW).wait(300) == 0, log_text(unmeasured)
        assert (unmeasured / RAW / "record.json").exists()
        assert_nothing_left(unmeasured)


def test_an_interrupted_snakemake_cancels_its_measurement(unmeasured, profile):
    process = start_measuring(unmeasured, profile)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(60) != 0
    assert_nothing_left(unmeasured)
    planned = locally(unmeasured, "--dry-run", RAW)
    assert planned.returncode == 0 and f"Measuring {CELL}" in planned.stdout, planned.stdout
