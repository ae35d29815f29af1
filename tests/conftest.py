"""What tests of several modules share."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from perseus.models import onnx_export
from perseus.study.tasks.export import ExportTask

# A shell that starts pytest in the background lets it, and all that it starts, ignore SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def export_task() -> ExportTask:
    """64 x 64 pixels keep tests fast; the architecture has batch normalisation."""
    return ExportTask(architecture="mobilenet_v3_small", input_size=64)


@pytest.fixture(scope="session")
def exported(
    export_task: ExportTask, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    """A folder with model.onnx and reference.npz, and the record of the check. To read only."""
    folder = tmp_path_factory.mktemp("exported")
    record = onnx_export.export_model(export_task, folder / "model.onnx", folder / "reference.npz")
    return folder, record
