"""Tests that only one measurement at a time uses a core, whoever starts it and however it ends."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from perseus.host import exclusive as exclusive_module
from perseus.host.exclusive import LockError, exclusive, exclusive_if_free

SCRIPTS = Path(__file__).parents[3] / "scripts"
HOLDER = """
import sys, time
from pathlib import Path
from perseus.host.exclusive import exclusive
from perseus.host.signals import terminate_as_exit

def say(message):
    print(message, flush=True)

with terminate_as_exit(), exclusive(sys.argv[3:], sys.argv[2], say, Path(sys.argv[1])):
    say("held")
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Return a function that starts a process. The process holds locks until its input ends."""
    started = []

    def start(owner: str, *names: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(tmp_path), owner, *names],
            env=os.environ | {"PYTHONPATH": str(SCRIPTS)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def is_free(name: str, folder: Path) -> bool:
    with exclusive_if_free(name, "a test", folder) as free:
        return free


def test_the_second_waits_and_says_once_for_whom(holder):
    first = holder("paper/cpu1.resnet50", "core-0", "core-1")
    assert first.stdout.readline() == "held\n"
    second = holder("quick/cpu1.alexnet", "core-1", "core-0")
    waiting = (
        f"waiting for cores, a GPU or a server that pid {first.pid} (paper/cpu1.resnet50) uses\n"
    )
    assert second.stdout.readline() == waiting
    first.stdin.close()
    assert second.stdout.readline() == "held\n"


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_whatever_ends_the_first_lets_the_second_begin(holder, ending):
    first = holder("a", "core-0")
    first.stdout.readline()
    second = holder("b", "core-0")
    assert second.stdout.readline().startswith("waiting")
    first.send_signal(ending)
    assert second.stdout.readline() == "held\n"


def test_one_that_waits_can_be_ended(holder, tmp_path):
    first = holder("a", "core-0")
    first.stdout.readline()
    second = holder("b", "core-0")
    assert second.stdout.readline().startswith("waiting")
    second.terminate()
    assert second.wait(10) == 128 + signal.SIGTERM
    assert not is_free("core-0", tmp_path)


def test_other_cores_are_free(holder, tmp_path):
    first = holder("a", "core-0")
    first.stdout.readline()
    assert is_free("core-1", tmp_path) and not is_free("core-0", tmp_path)


@pytest.mark.parametrize("names", [("core-0", "core-1"), ("core-1", "core-0")])
def test_all_take_them_in_the_same_order_so_that_no_two_wait_for_each_other(
    holder, tmp_path, names
):
    last = holder("a", "core-1")
    last.stdout.readline()
    assert holder("b", *names).stdout.readline().startswith("waiting")
    assert not is_free("core-0", tmp_path)


def test_the_file_of_a_lock_is_for_all_users(tmp_path):
    previous = os.umask(0o077)
    try:
        assert is_free("core-0", tmp_path)
    finally:
        os.umask(previous)
    assert (tmp_path / "core-0.lock").stat().st_mode & 0o777 == 0o666


def link(path: Path, target: Path) -> None:
    path.symlink_to(target)


def hard_link(path: Path, target: Path) -> None:
    path.hardlink_to(target)


def fifo(path: Path, _target: Path) -> None:
    os.mkfifo(path)


def folder(path: Path, _target: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("planted", [link, hard_link, fifo, folder])
def test_what_another_user_put_there_is_neither_followed_nor_written_to(tmp_path, planted):
    target = tmp_path / "precious"
    target.write_text("precious")
    planted(tmp_path / "core-0.lock", target)
    with (
        pytest.raises(LockError, match=r"core-0\.lock.*cannot be used.*remove this file"),
        exclusive(["core-0"], "a", print, tmp_path),
    ):
        pytest.fail("it was locked")
    assert target.read_text() == "precious"


def test_a_file_that_cannot_be_made_is_not_said_to_be_removed(tmp_path):
    with (
        pytest.raises(LockError, match=r"core-0\.lock.*cannot be created.*files") as raised,
        exclusive(["core-0"], "a", print, tmp_path / "missing"),
    ):
        pytest.fail("it was locked")
    assert "remove this file" not in str(raised.value)


def test_a_full_disk_locks_as_any_other(holder, tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with exclusive(["core-0"], "a", print, tmp_path):
        second = holder("b", "core-0")
        assert (
            second.stdout.readline()
            == "waiting for cores, a GPU or a server that another process uses\n"
        )
    assert second.stdout.readline() == "held\n"


def test_a_file_that_was_removed_meanwhile_locks_nothing(holder, tmp_path):
    """If a removed file counted as a lock, two processes would lock different files of the same
    name."""
    first = holder("a", "core-0")
    first.stdout.readline()
    second = holder("b", "core-0")
    assert second.stdout.readline().startswith("waiting")
    (tmp_path / "core-0.lock").unlink()
    first.stdin.close()
    assert second.stdout.readline() == "held\n"
    assert not is_free("core-0", tmp_path)


def test_what_a_file_says_of_its_owner_is_shown_as_one_short_line(holder, tmp_path):
    first = holder("a", "core-0")
    first.stdout.readline()
    (tmp_path / "core-0.lock").write_text("pid 1\x1b[31m\n(a/b)" + "y" * 1000)
    text = holder("b", "core-0").stdout.readline().strip()
    assert "pid 1" in text and text.isprintable() and len(text) < 300


def test_a_lock_whose_file_is_removed_as_it_is_opened_is_not_held(tmp_path, monkeypatch):
    opened = exclusive_module._open

    def removed(path):
        descriptor = opened(path)
        path.unlink()
        return descriptor

    monkeypatch.setattr(exclusive_module, "_open", removed)
    with exclusive_if_free("core", "one", tmp_path) as held:
        assert not held
