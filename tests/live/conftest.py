"""One complete run of the study smoke, which all tests of this folder share."""

from __future__ import annotations

from pathlib import Path

import pytest
from live.smoke_study import kill_server, running
from workflow_files import copy_workflow


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> tuple[Path, str]:
    """Return (folder, terminal output) of a complete run. Tests only read the folder.

    The fixture kills the first server that is under load.
    """
    root = copy_workflow(tmp_path_factory.mktemp("smoke"))
    with running(root, "all") as process:
        kill_server(root, process, "warm_up ")
        status = process.wait(800)  # two attempts to measure all cells, 400 s each
    output = (root / "output.txt").read_text()
    assert status == 0, output[-5000:]
    return root, output
