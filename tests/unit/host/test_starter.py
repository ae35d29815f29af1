"""Tests that a job ends when the process that started it ends, also through shells."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from perseus.host import identity as identities
from perseus.host import starter
from perseus.host.identity import identity, is_gone
from perseus.host.job import job

SCRIPTS = Path(__file__).parents[3] / "scripts"
JOB = """
import os, sys, time
from perseus.host.job import job
from perseus.host.signals import terminate_as_exit

with job(sys.argv[1]) as say, terminate_as_exit():
    try:
        print(os.getpid(), file=sys.stderr, flush=True)
        time.sleep(60)
    finally:
        print("left in order", file=sys.stderr, flush=True)
"""
STARTER = """
import subprocess, sys, threading
from perseus.host.starter import announce

announce()
# As Snakemake does: from another thread, by a shell that stays.
command = f"{sys.executable} -c '{sys.argv[2]}' {sys.argv[1]}; true"
threading.Thread(target=subprocess.run, args=(command,), kwargs={"shell": True}).start()
"""


def started(job, log):
    """Return a process that starts a job and copies the standard error of the job."""
    return subprocess.Popen(
        [sys.executable, "-c", STARTER, str(log), job],
        env=os.environ | {"PYTHONPATH": str(SCRIPTS)},
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_a_job_ends_in_order_when_its_snakemake_is_killed(tmp_path, ending):
    log = tmp_path / "cell.log"
    with started(JOB, log) as process:
        found = identity(int(process.stderr.readline()))
        assert not is_gone(found)
        process.send_signal(ending)
        assert process.stderr.readline() == "left in order\n"
    assert "has ended, so the job ends" in log.read_text()
    until = time.monotonic() + 10
    while not is_gone(found) and time.monotonic() < until:
        time.sleep(0.05)
    assert is_gone(found)


LOSING_JOB = """
import os, sys, time
from perseus.host import signals, starter
from perseus.host.job import job

signals.LEAVES_S = starter.LEAVES_S = 0.5

class Loses:
    def __del__(self):
        print(os.getpid(), file=sys.stderr, flush=True)
        time.sleep(60)

with job(sys.argv[1]) as say, signals.terminate_as_exit():
    Loses()
    say("measures on")
    time.sleep(20)
    say("has measured")
"""


def test_a_job_that_loses_its_exit_in_a_destructor_is_told_again(tmp_path):
    log = tmp_path / "cell.log"
    with started(LOSING_JOB, log) as process:
        found = identity(int(process.stderr.readline()))
        process.kill()
        text = process.stderr.read()  # reads until the job has also ended
    assert "SystemExit: 143" in text  # the first SystemExit, which Python ignored
    assert "measures on" in text
    assert "has measured" not in text
    assert is_gone(found)


@pytest.mark.parametrize(
    "announced", ["", "no name", "00000000-1-1"], ids=["nobody", "rubbish", "another machine"]
)
def test_a_job_without_a_snakemake_here_looks_after_nobody(tmp_path, monkeypatch, announced):
    monkeypatch.setenv(starter.VARIABLE, announced)
    monkeypatch.setattr(starter, "POLL_S", 0.01)
    with job(str(tmp_path / "cell.log")):
        time.sleep(0.1)
    assert (tmp_path / "cell.log").read_text() == ""


def test_a_living_snakemake_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setenv(starter.VARIABLE, identity())
    monkeypatch.setattr(starter, "POLL_S", 0.01)
    with job(str(tmp_path / "cell.log")):
        assert "starter" in {thread.name for thread in threading.enumerate()}
        time.sleep(0.1)
    assert (tmp_path / "cell.log").read_text() == ""


def test_a_name_is_of_one_process_only(tmp_path):
    mine = identity()
    assert not is_gone(mine)
    world, pid, start = mine.split("-")
    assert is_gone(f"{world}-{pid}-{int(start) - 1}"), "the same id, a process before"
    other = "0" * 8 if world != "0" * 8 else "1" * 8
    assert not is_gone(f"{other}-{pid}-{int(start) - 1}"), "of another machine: nobody knows"


def test_a_job_ends_although_what_it_says_of_it_cannot_be_written(monkeypatch):
    def say(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    ended = threading.Event()

    def kill(pid, number):
        assert (pid, number) == (os.getpid(), signal.SIGTERM)
        ended.set()
        threading.Event().wait()  # one SIGTERM is enough here

    monkeypatch.setenv(starter.VARIABLE, "starter")
    monkeypatch.setattr(starter, "is_gone", lambda _: True)
    monkeypatch.setattr(starter.os, "kill", kill)
    starter.end_with_starter(say)
    assert ended.wait(5)


def test_a_process_that_proc_hides_is_not_gone(monkeypatch):
    """If /proc is mounted with hidepid, it hides the processes of other users."""
    name = identity()
    monkeypatch.setattr(identities, "start_ticks", lambda _: None)
    monkeypatch.setattr(identities.Path, "exists", lambda _: False)
    assert not is_gone(name)
    world, _, start = name.split("-")
    with subprocess.Popen(["true"]) as ended:
        pass
    assert is_gone(f"{world}-{ended.pid}-{start}")
