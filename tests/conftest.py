"""Fixtures for the tests of several modules."""

from __future__ import annotations

import fcntl
import gc
import importlib
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from perseus.models import onnx_export
from perseus.study.tasks.export import ExportTask

# A shell that starts pytest in the background lets pytest and its child processes ignore SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Exclude the modules and the tests from garbage collection: they stay until the end.

    Collect garbage rarely, which saves 5 % of the CPU time.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture(autouse=True)
def on_its_cores() -> Iterator[None]:
    """Give the process all its cores back after a test: a measurement pins its own process."""
    mine = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, mine)


@pytest.fixture(scope="session")
def torch() -> ModuleType:
    """Import torch only for the tests that use it: the import takes seconds in each worker."""
    return importlib.import_module("torch")


@pytest.fixture(scope="session")
def export_task() -> ExportTask:
    """Return an export of 64 x 64 pixels, which is fast, of a network with batch normalisation."""
    return ExportTask(architecture="mobilenet_v3_small", input_size=64)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function `folder(name, make)`, which returns a folder that `make` has filled once.

    The processes of pytest-xdist share the folder, so tests only read it.
    """
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    def folder(name: str, make: Callable[[Path], object]) -> Path:
        made, partial = root / name, root / f"{name}.partial"
        with (root / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                partial.mkdir()
                make(partial)
                partial.rename(made)
        return made

    return folder


@pytest.fixture(scope="session")
def exported(
    export_task: ExportTask, made_once: Callable[..., Path]
) -> tuple[Path, dict[str, Any]]:
    """Return a read-only folder with model.onnx and reference.npz, and the record of the export."""

    def export(folder: Path) -> None:
        model, reference = (folder / "files" / name for name in ("model.onnx", "reference.npz"))
        model.parent.mkdir()
        record = onnx_export.export_model(export_task, model, reference)
        (folder / "record.json").write_text(json.dumps(record))

    folder = made_once("exported", export)
    return folder / "files", json.loads((folder / "record.json").read_text())
