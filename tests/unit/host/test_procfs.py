"""Tests of the resources that processes hold, and of the CPU time that they use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from perseus.host import procfs
from perseus.host.procfs import (
    CpuReading,
    most_at_work,
    open_files,
    other_cpu_share,
    process_table,
    read_cpu,
    resources,
)


def test_the_files_that_a_process_opens_are_counted(tmp_path: Path) -> None:
    mine, path = {os.getpid()}, tmp_path / "file"
    path.touch()
    before = open_files(mine)
    with closing(path.open()), closing(path.open()):
        assert before is not None and open_files(mine) == before + 2
    assert open_files(mine) == before


def test_a_process_that_has_ended_has_no_files() -> None:
    assert open_files([2**22 + 1]) == 0  # no process has this id


def test_files_of_another_user_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: str) -> list[str]:
        raise PermissionError(path)

    monkeypatch.setattr(procfs.os, "listdir", denied)
    assert open_files([1]) is None


def test_what_processes_hold_is_summed() -> None:
    table, pid = process_table(), os.getpid()
    once, twice = resources(table, [pid]), resources(table, [pid, pid])
    assert once.memory_bytes > 2**20 and twice.memory_bytes == 2 * once.memory_bytes
    assert once.open_files is not None and twice.open_files == 2 * once.open_files


@contextmanager
def at_work_on(core: int) -> Iterator[int]:
    """Yield the id of a process that keeps one core busy."""
    code = f"import os; os.sched_setaffinity(0, [{core}])\nprint(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.readline()
            yield process.pid
        finally:
            process.kill()


def test_who_works_on_the_cores_of_a_server_is_named() -> None:
    here, *elsewhere = sorted(os.sched_getaffinity(0))
    with at_work_on(here) as pid, subprocess.Popen(["sleep", "9"]) as ours:
        before = only(pid, read_cpu([here], ours.pid))
        time.sleep(0.5)
        after = only(pid, read_cpu([here], ours.pid))
        of_his = read_cpu([here], pid)
        ours.kill()
        assert other_cpu_share(before, after) > 0.2
        name = Path(f"/proc/{pid}/comm").read_text().strip()
        assert most_at_work(before, after, [here]) == f"{name} (process {pid})"
        assert most_at_work(before, after, elsewhere) == ""
        assert pid not in of_his.others


def test_a_child_that_ends_takes_no_time_of_its_server_along() -> None:
    """When the parent has waited for the child, the parent's CPU time contains the child's."""
    here = min(os.sched_getaffinity(0))
    code = "import subprocess, sys; x = subprocess.Popen([sys.executable, '-c', 'while 1: pass']);"
    code += "print(x.pid, flush=True); input(); x.wait(); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as ours:
        assert ours.stdin is not None and ours.stdout is not None
        child = int(ours.stdout.readline())
        time.sleep(0.7)
        before = read_cpu([here], ours.pid)
        os.kill(child, signal.SIGKILL)
        while process_table().get(child) is not None:
            time.sleep(0.01)
        unwaited = read_cpu([here], ours.pid)
        ours.stdin.write("\n")
        ours.stdin.flush()
        assert ours.stdout.readline()
        waited = read_cpu([here], ours.pid)
        ours.kill()
    assert waited.used >= before.used > 0
    assert 0 <= other_cpu_share(before, unwaited) <= 1


def only(pid: int, seen: CpuReading) -> CpuReading:
    return replace(seen, others={pid: seen.others[pid]})


def test_who_worked_little_or_has_ended_is_not_named() -> None:
    core = min(os.sched_getaffinity(0))
    before, pid, ended = CpuReading(0, 0, 0, {}), os.getpid(), 2**22 + 1
    assert most_at_work(before, CpuReading(90, 100, 0, {pid: 10}), [core]) == ""
    assert f"(process {pid})" in most_at_work(before, CpuReading(90, 100, 0, {pid: 11}), [core])
    busy_before = CpuReading(0, 0, 0, {pid: 80})
    assert most_at_work(busy_before, CpuReading(90, 100, 0, {pid: 85}), [core]) == ""
    assert most_at_work(before, CpuReading(90, 100, 0, {ended: 90}), [core]) == ""
