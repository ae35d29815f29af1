"""The study smoke in a copy of the workflow, and the leftovers of its runs."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import yaml

SNAKEMAKE = [sys.executable, "-m", "snakemake", "--cores", "4"]
PEAK = "results/smoke/raw/cpu1.squeezenet1_1.peak.r1"
SMOKE = ["--configfile", "config/studies/smoke.yaml"]


def snakemake(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SNAKEMAKE, *arguments, *SMOKE],
        cwd=root,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=200,
    )


def with_more(
    finished: Path, root: Path, experiments: Sequence[Any], scenarios: Sequence[Any], cells: int
) -> Path:
    """Add experiments and scenarios to a copy of the finished study, run it and return its folder.

    The study is in kinds.yaml. The run measures this number of cells and no others.
    """
    shutil.copytree(finished, root, symlinks=True)
    study = yaml.safe_load((root / "config/studies/smoke.yaml").read_text())
    study["scenarios"][0]["experiments"] += experiments
    study["scenarios"] += scenarios
    (root / "kinds.yaml").write_text(yaml.safe_dump(study))
    done = subprocess.run(
        [*SNAKEMAKE, "all", "--configfile", "kinds.yaml"],
        cwd=root,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=800,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert re.search(rf"^measure +{cells}$", done.stdout, re.M), "others were measured"
    return root


@contextlib.contextmanager
def running(root: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run Snakemake in its own session, as from a terminal, with its output in output.txt."""
    with (root / "output.txt").open("w") as output:
        process = subprocess.Popen(
            [*SNAKEMAKE, *arguments, *SMOKE],
            cwd=root,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)


def started_by(process: subprocess.Popen[bytes]) -> dict[int, str]:
    """Return the command lines of the descendants of a process, by process id."""
    found = {}
    for each in psutil.Process(process.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):  # the process has just ended
            found[each.pid] = " ".join(each.cmdline())
    return found


def wait_until(holds: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 200
    while not holds():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.1)


def kill_server(root: Path, process: subprocess.Popen[bytes], message: str, count: int = 1) -> None:
    """Kill the server one second after the output contains the message `count` times."""
    wait_until(lambda: (root / "output.txt").read_text().count(message) >= count, process)
    time.sleep(1)
    commands = started_by(process).items()
    (server,) = (pid for pid, words in commands if "/tritonserver --" in words)
    os.kill(server, signal.SIGKILL)
    wait_until(lambda: server not in started_by(process), process)


def left_behind(root: Path) -> list[str]:
    """Return the processes that were started in `root`, and shared memory of Perseus."""
    found = [str(path) for path in Path("/dev/shm").glob("perseus-*")]
    for process in psutil.process_iter(["name", "cmdline"]):
        words = " ".join(process.info["cmdline"] or [])
        if "perseus-triton" in words or "sender.main" in words or str(root) in words:
            found.append(words)
    return found
