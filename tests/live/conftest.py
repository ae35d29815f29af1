"""The study smoke, which is measured once for all tests that read it or add to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from live.smoke_study import kill_server, running
from workflow_files import copy_workflow


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> tuple[Path, str]:
    """Return (folder, terminal output) of a complete run. Tests only read it.

    The test kills the first server that is under load.
    """
    root = copy_workflow(tmp_path_factory.mktemp("smoke"))
    with running(root, "all") as process:
        kill_server(root, process, "warm_up ")
        status = process.wait(800)  # 400 s for each of the two attempts at all cells
    output = (root / "output.txt").read_text()
    assert status == 0, output[-5000:]
    return root, output
