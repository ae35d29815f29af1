"""After a kill -9 of Snakemake its jobs end, and the next run continues."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from workflow_copy import OUTPUT_FILES, TOUCH_OUTPUTS

from perseus.host.workflow_lock import hold, is_live, remove_dead

ROOT = Path(__file__).parents[2]
LONG = (
    OUTPUT_FILES
    + """
import os
import time

from perseus.host.job import job
from perseus.host.signals import terminate_as_exit

with job(snakemake.log[0]) as say, terminate_as_exit():
    say(f"pid {os.getpid()}")
    while not os.path.exists("go-on"):
        time.sleep(0.05)
for path in output_files:
    path.write_text('{"outcome": "ok", "reason": ""}')
"""
)
CELL = "results/default/raw/cpu1.squeezenet1_1.peak.r1"
COMMAND = [sys.executable, "-m", "snakemake", "--cores", "2", CELL]
LOCKED = "Directory cannot be locked"


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def finished(root: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60)


class Run:
    """A run of the workflow in the background."""

    def __init__(self, root: Path) -> None:
        self.root = root
        with (root / "output.txt").open("w") as file:
            self.process = subprocess.Popen(COMMAND, cwd=root, stdout=file, stderr=file)
        until(lambda: bool(self.jobs()) or self.process.poll() is not None)

    def output(self) -> str:
        return (self.root / "output.txt").read_text()

    def jobs(self) -> list[int]:
        return [int(pid) for pid in re.findall(r"\] pid (\d+)", self.output())]


@pytest.fixture
def workflow(empty, tmp_path):
    """Return the default study with fake cells, which run until the file `go-on` exists."""
    workflow = empty.copy(tmp_path / "workflow")
    for step in ("export", "repository"):
        workflow.fake(step, TOUCH_OUTPUTS)
    workflow.fake("measure", LONG)
    yield workflow
    (workflow.root / "go-on").touch()


def locks(root: Path) -> list[Path]:
    return list((root / ".snakemake/locks").glob("*"))


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_after_a_kill_the_job_ends_and_the_same_command_goes_on(workflow):
    root = workflow.root
    first = Run(root)
    (job,) = first.jobs()
    first.process.kill()
    first.process.wait()
    until(lambda: not is_alive(job))
    assert len(locks(root)) == 2
    (root / "go-on").touch()
    second = Run(root)
    assert second.process.wait(60) == 0, second.output()
    assert "its lock is removed" in second.output()
    assert not locks(root) and not remove_dead(root)


def test_the_lock_of_a_living_run_stays(workflow):
    root = workflow.root
    first = Run(root)
    (job,) = first.jobs()
    assert not remove_dead(root) and len(locks(root)) == 2
    first.process.send_signal(signal.SIGSTOP)  # the process is stopped, but alive
    assert not remove_dead(root) and len(locks(root)) == 2
    first.process.send_signal(signal.SIGCONT)
    refused = finished(root, COMMAND)
    assert refused.returncode != 0 and LOCKED in refused.stderr
    assert is_alive(job) and len(locks(root)) == 2, "a refused run unlocks nothing"
    (root / "go-on").touch()
    assert first.process.wait(60) == 0, first.output()
    assert not locks(root)


def test_a_study_that_ends_leaves_the_lock_of_another_study(workflow):
    root = workflow.root
    first = Run(root)
    check = "results/other/models/squeezenet1_1/check.json"
    other = finished(root, [*COMMAND[:-1], check, "--config", "study=other"])
    assert other.returncode == 0 and len(locks(root)) == 2, other.stderr
    assert LOCKED in finished(root, COMMAND).stderr
    (root / "go-on").touch()
    assert first.process.wait(60) == 0, first.output()
    assert (root / ".snakemake/locks").is_dir(), "a run that still plans will lock files there"


def test_unlocking_removes_the_locks_of_all_runs(workflow):
    root = workflow.root
    first = Run(root)
    unlocked = finished(root, [*COMMAND, "--unlock"])
    assert unlocked.returncode == 0 and not locks(root), unlocked.stderr
    (root / "go-on").touch()
    assert first.process.wait(60) == 0, first.output()


def test_a_lock_of_which_nothing_is_known_stays(tmp_path):
    """Another workflow may have made the lock, or the file system may not support file locks."""
    folder = tmp_path / ".snakemake/locks"
    folder.mkdir(parents=True)
    (folder / "0.output.lock").touch()
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    assert not remove_dead(tmp_path) and locks(tmp_path)


def test_the_lock_of_another_user_s_run_stays_where_only_it_may_write(tmp_path, monkeypatch):
    """A user who may not write `perseus.live` detects the live run of another user."""
    (tmp_path / ".snakemake/locks").mkdir(parents=True)
    (tmp_path / ".snakemake/locks/0.output.lock").touch()
    (tmp_path / ".snakemake/perseus.live").touch(0o644)
    plain = os.open

    def open_as_another(path, flags, *mode):
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise PermissionError
        return plain(path, flags, *mode)

    with monkeypatch.context() as as_another:
        as_another.setattr(os, "open", open_as_another)
        assert is_live(tmp_path) and not remove_dead(tmp_path)
        hold(tmp_path)
    assert is_live(tmp_path) and not remove_dead(tmp_path) and locks(tmp_path)


def test_that_a_run_lives_here_is_on_the_disk_before_it_locks(tmp_path, monkeypatch):
    """If a power failure lost the file `perseus.live`, later runs would never remove the lock."""
    synced = set()
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.add(os.fstat(descriptor).st_ino))
    hold(tmp_path)
    live = tmp_path / ".snakemake/perseus.live"
    assert {path.stat().st_ino for path in (live, live.parent, tmp_path)} <= synced


def test_two_runs_live_until_the_last_one_ends(tmp_path):
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    holds = (
        "from pathlib import Path; from perseus.host.workflow_lock import hold;"
        " hold(Path.cwd()); print(); input()"
    )
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", holds],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT / "scripts")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    for run in runs:
        run.stdout.readline()
    folder = tmp_path / ".snakemake/locks"
    folder.mkdir()
    (folder / "0.output.lock").touch()
    for run, removed in zip(runs, (False, True), strict=True):
        run.kill()
        run.communicate()
        assert remove_dead(tmp_path) == removed


def test_a_cell_from_before_a_power_failure_does_not_count_as_running(workflow):
    root = workflow.root
    left = root / "logs/other/measure/cell.progress.json"
    left.parent.mkdir(parents=True)
    left.touch()
    first = Run(root)
    assert not left.exists()
    left.touch()  # now a cell of the run `first`
    check = "results/other/models/squeezenet1_1/check.json"
    other = finished(root, [*COMMAND[:-1], check, "--config", "study=other"])
    assert other.returncode == 0 and left.exists(), other.stderr
    (root / "go-on").touch()
    assert first.process.wait(60) == 0, first.output()


def test_what_a_job_of_an_earlier_run_said_is_not_said_again(workflow):
    """An error file of an earlier run may report a full disk, although the disk now has space."""
    stale = workflow.root / "logs/default/figures/peaks.error"
    stale.parent.mkdir(parents=True)
    stale.write_text("peaks: the disk is full")
    workflow.fake("measure", "raise SystemExit(1)")
    run = Run(workflow.root)
    assert run.process.wait(60) == 1
    assert "A job failed; its log is under logs/default/" in run.output()
    assert "the disk is full" not in run.output() and not stale.exists()
