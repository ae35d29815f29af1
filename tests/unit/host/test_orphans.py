"""Tests of the files that killed processes leave in the temporary folder."""

from __future__ import annotations

import os
import signal
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

KILLED_JOBS = {
    "pictures": """
from perseus.models import picture_export

picture_export.random_pictures = killed
picture_export.export_pictures(SimpleNamespace(images=(), seed=1), Path("pictures.npz"))
""",
    "precision": """
import onnx
from onnxruntime.quantization import shape_inference
from perseus.models import onnx_precision

onnx.load = lambda path: onnx.ModelProto(opset_import=[onnx.helper.make_opsetid("", 18)])
shape_inference.quant_pre_process = killed
onnx_precision.CONVERTERS["int8"](Path("model.onnx"), [])
""",
    "check": """
from perseus.results import check

check.parquet.write = killed
list(check.csv_problems("peaks", None, Path("peaks.csv")))
""",
}
"""Jobs that are killed while they write to a temporary folder."""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Return an empty temporary folder, and simulate a host without shared memory."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(orphans, "SHM", tmp_path / "shm")
    return tmp_path


def test_a_folder_goes_with_its_context(temporary):
    with orphans.temporary_folder() as folder:
        (folder / "requests.parquet").touch()
        assert folder.parent == temporary
    assert not folder.exists()


def run(temporary: Path, code: str) -> str:
    """Run code that kills its own process, with the temporary folder `temporary`. Return its
    output."""
    environment = os.environ | {"PYTHONPATH": str(SCRIPTS), "TMPDIR": str(temporary)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return done.stdout


@pytest.mark.parametrize("job", KILLED_JOBS)
def test_what_a_killed_job_left_goes_before_the_next_server_starts(temporary, job):
    killed = """
import os, signal
from pathlib import Path
from types import SimpleNamespace

def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    run(temporary, killed + KILLED_JOBS[job])
    folders = [path for path in temporary.iterdir() if path.is_dir()]
    assert folders
    orphans.sweep_dead_owners()
    assert not [path for path in folders if path.exists()]


def test_the_folder_of_a_process_that_was_killed_is_swept_and_no_other(temporary):
    left = Path(run(temporary, KILLED).strip())
    assert left.parent == temporary and left.is_dir()
    with orphans.temporary_folder() as mine:
        orphans.sweep_dead_owners()
        assert mine.is_dir() and not left.exists()
