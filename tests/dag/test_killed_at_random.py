"""Tests that a study that is killed repeatedly, at random times, continues in the next run.

In place of the scripts of Perseus, the jobs run a script that reads the inputs and takes some time
to write the outputs. For the same test on real servers, see tests/live/test_killed_smoke.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

import killing
import pytest
from workflow_copy import OUTPUT_FILES

pytestmark = pytest.mark.alone

STEP = (
    OUTPUT_FILES
    + """
import json
import os
import time

from perseus.host.files import whole
from perseus.host.job import job
from perseus.host.signals import terminate_as_exit

with job(snakemake.log[0]), terminate_as_exit():
    made = [path for path in snakemake.input if path.startswith(("results", "model_repository"))]
    for path in map(Path, made):
        for file in [path] if path.is_file() else path.glob("[!.]*"):
            read = json.loads(file.read_text())
            assert read["cells"] if file.parent.name == "measured" else read["path"] == str(file)
    for path in output_files:
        with whole(path) as partial, partial.open("w") as file:
            file.write('{"outcome": "ok", "reason": "", ')
            file.flush()
            time.sleep(0.4 / len(output_files))
            file.write('"path": "%s"}' % path)
"""
)
STEPS = ("export", "repository", "ceiling", "measure", "predictions", "tables", "figure", "report")
COMMAND = [sys.executable, "-m", "snakemake", "--cores", "2", "all"]


def outputs(root: Path) -> dict[str, str]:
    """Return the text of each file in the results and repositories, also of leftover files, by
    path."""
    places = [root / "results", root / "model_repository"]
    found = [path for place in places for path in place.rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): path.read_text(errors="replace") for path in found}


@pytest.fixture
def workflow(empty, tmp_path):
    workflow = empty.copy(tmp_path / "workflow")
    for step in STEPS:
        workflow.fake(step, STEP)
    return workflow


def test_killed_at_random_it_ends_as_if_undisturbed(empty, workflow, tmp_path):
    root = workflow.root
    undisturbed = empty.copy(tmp_path / "undisturbed")  # its jobs write the files without delay
    undisturbed.run("--cores", "2", "all")
    wanted = outputs(undisturbed.root)

    def is_whole() -> None:
        assert outputs(root) == wanted

    with killing.told(killing.seed()) as story:
        killing.Killer(root, COMMAND, 6.0, is_whole, story).kill_and_finish(killing.kills(4))
