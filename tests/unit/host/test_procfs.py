"""What processes hold."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from perseus.host import procfs
from perseus.host.procfs import held, open_files, process_table


def test_the_files_that_a_process_opens_are_counted(tmp_path: Path) -> None:
    mine, path = {os.getpid()}, tmp_path / "file"
    path.touch()
    before = open_files(mine)
    with closing(path.open()), closing(path.open()):
        assert before is not None and open_files(mine) == before + 2
    assert open_files(mine) == before


def test_a_process_that_has_ended_has_no_files() -> None:
    assert open_files([2**22 + 1]) == 0  # no process has such an id


def test_files_of_another_user_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: str) -> list[str]:
        raise PermissionError(path)

    monkeypatch.setattr(procfs.os, "listdir", denied)
    assert open_files([1]) is None


def test_what_processes_hold_is_summed() -> None:
    table, pid = process_table(), os.getpid()
    once, twice = held(table, [pid]), held(table, [pid, pid])
    assert once.memory_bytes > 2**20 and twice.memory_bytes == 2 * once.memory_bytes
    assert once.open_files is not None and twice.open_files == 2 * once.open_files
