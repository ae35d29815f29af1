"""What processes that were killed leave in the temporary folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from perseus.host import orphans

SCRIPTS = Path(__file__).parents[3] / "scripts"
KILLED = """
import os, signal
from perseus.host.orphans import temporary_folder

with temporary_folder() as folder:
    (folder / "requests.parquet").touch()
    print(folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The temporary folder, and no shared memory."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(orphans, "SHM", tmp_path / "shm")
    return tmp_path


def test_a_folder_goes_with_its_context(temporary):
    with orphans.temporary_folder() as folder:
        (folder / "requests.parquet").touch()
        assert folder.parent == temporary
    assert not folder.exists()


def test_the_folder_of_a_process_that_was_killed_is_swept_and_no_other(temporary):
    environment = os.environ | {"PYTHONPATH": str(SCRIPTS), "TMPDIR": str(temporary)}
    killed = subprocess.run(
        [sys.executable, "-c", KILLED], env=environment, capture_output=True, text=True
    )
    left = Path(killed.stdout.strip())
    assert left.parent == temporary and left.is_dir()
    with orphans.temporary_folder() as mine:
        orphans.sweep_dead_owners()
        assert mine.is_dir() and not left.exists()
