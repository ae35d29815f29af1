"""Tests that Perseus drops files from the page cache and measures the cached share."""

import os
from os import fsync

import pytest

from perseus.host.page_cache import evict, resident_share


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / "model.onnx", tmp_path / "config.pbtxt", tmp_path / "empty"]
    paths[0].write_bytes(os.urandom(2**20))
    paths[1].write_text("name: 'model'")
    paths[2].touch()
    return paths


def test_what_was_just_written_is_in_memory(files):
    assert resident_share(files) == 1.0


@pytest.fixture
def file_system_that_lets_go(tmp_path, monkeypatch):
    """Check without `evict` that the file system drops pages, so that a broken `evict` fails."""
    monkeypatch.setattr(os, "fsync", fsync)  # only data on the disk can leave the page cache
    with (tmp_path / "probe").open("wb+") as probe:
        probe.write(os.urandom(2**20))
        os.fsync(probe.fileno())
        os.posix_fadvise(probe.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if resident_share([tmp_path / "probe"]) == 1.0:
        pytest.skip("this file system keeps its files in memory, as tmpfs does")


@pytest.mark.usefixtures("file_system_that_lets_go")
def test_what_was_evicted_is_read_again(files):
    content = files[0].read_bytes()
    evict(files)
    assert resident_share(files) < 0.1
    assert files[0].read_bytes() == content
    assert resident_share(files[:1]) == 1.0


def test_no_pages_are_no_share(files):
    assert resident_share([]) == resident_share(files[2:]) == 0.0
