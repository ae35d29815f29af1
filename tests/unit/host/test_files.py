"""Files that are being written have names of their own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from perseus.host.files import partial_path, whole
from perseus.host.identity import identity
from perseus.measurement.monitor import MonitorFile


@pytest.fixture
def dead() -> str:
    """The name of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        name = identity(process.pid)
        process.stdin.close()
    return name


def test_two_processes_write_the_same_file_without_meeting(tmp_path):
    path = tmp_path / "cell/record.json"
    with whole(path) as partial:
        partial.write_text("mine")
        child = os.fork()
        if child == 0:
            with whole(path) as theirs:
                theirs.write_text("theirs")
            os._exit(0 if partial.exists() and theirs != partial else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert path.read_text() == "theirs" and partial.read_text() == "mine"
    assert path.read_text() == "mine"
    assert list(path.parent.iterdir()) == [path]


def test_what_a_killed_process_left_of_the_same_file_goes(tmp_path, dead):
    left = {
        name: tmp_path / f".{name}.partial"
        for name in (
            f"monitor.parquet.{dead}",
            f"windows.parquet.{dead}",
            f"monitor.parquet.{identity(os.getppid())}",
            "monitor.parquet.00000000-1-1",
            "monitor.parquet.mine",
        )
    }
    for path in left.values():
        path.touch()
    with MonitorFile(tmp_path / "monitor.parquet"):
        pass
    assert {name for name, path in left.items() if not path.exists()} == {f"monitor.parquet.{dead}"}
    partial_path(tmp_path / "windows.parquet")
    assert not left[f"windows.parquet.{dead}"].exists()


def test_two_monitors_of_one_cell_do_not_fail_on_a_shared_name(tmp_path):
    """As when the job of a Snakemake that was killed still ends beside the next one's."""
    path = tmp_path / "monitor.parquet"
    with MonitorFile(path):
        child = os.fork()
        if child == 0:
            with MonitorFile(path):
                pass
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError, match="no space"), whole(tmp_path / "x.json") as partial:
        partial.write_text("half")
        raise RuntimeError("no space")
    assert list(tmp_path.iterdir()) == []
