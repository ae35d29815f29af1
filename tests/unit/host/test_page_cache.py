"""Files are taken out of the page cache, and it is told how much of them is in it."""

import os

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


def test_what_was_evicted_is_read_again(files):
    content = files[0].read_bytes()
    evict(files)
    share = resident_share(files)
    if share == 1.0:
        pytest.skip("this file system keeps its files in memory, as tmpfs does")
    assert share < 0.1
    assert files[0].read_bytes() == content
    assert resident_share(files[:1]) == 1.0


def test_no_pages_are_no_share(files):
    assert resident_share([]) == resident_share(files[2:]) == 0.0
