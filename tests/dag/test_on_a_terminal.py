"""Tests of Snakemake on a terminal: the live view of the measured cell, Ctrl-C, and a full disk."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
import terminal
from workflow_copy import TOUCH_OUTPUTS

TESTS = Path(__file__).parents[1]
MEASURING = f"""
import sys
import time

from perseus.host.job import job
from perseus.host.signals import terminate_as_exit
from perseus.measurement.progress.listeners import listeners

sys.path.append({str(TESTS)!r})
from exported import MEASURED

log = snakemake.log[0]
time.sleep(2)  # what Snakemake says of starting it comes first, and not over the view
with job(log) as say, listeners(log, say) as tell, terminate_as_exit():
    tell(MEASURED.model_copy(update={{"cell": snakemake.wildcards.cell}}))
    say("it is measured")
    time.sleep(60)
"""
COMMAND = [sys.executable, "-m", "snakemake", "--cores", "2", "measurements"]
INTERRUPTED = "Interrupted. Run the same command again: Perseus keeps all finished measurements."


@pytest.fixture
def workflow(empty, tmp_path):
    """Return the default study with fake cells, each of which takes a minute."""
    workflow = empty.copy(tmp_path / "workflow")
    for step in ("export", "repository"):
        workflow.fake(step, TOUCH_OUTPUTS)
    workflow.fake("measure", MEASURING)
    return workflow


def test_the_view_stands_at_the_end_and_ctrl_c_is_a_line(workflow):
    with terminal.Terminal(COMMAND, cwd=workflow.root) as on:
        on.until("it is measured")
        time.sleep(0.5)  # time to write the live view
        (told,) = (workflow.root / "logs/default/measure").glob("*.progress.json")
        on.interrupt()
        left = on.end()
    assert on.process.returncode == 1 and not told.exists()
    text = next(i for i, line in enumerate(left) if "it is measured" in line)
    assert left[text].startswith(f"[{told.name.removesuffix('.progress.json')} ")
    first, second, log, elapsed = left[text + 1 :]
    assert first == "^CTerminating processes on user request, this might take some time."
    assert second == INTERRUPTED
    assert log.startswith("Complete log(s): ") and elapsed.startswith("Elapsed time: ")


def test_a_request_to_end_lets_a_job_finish_and_is_no_failure(workflow):
    finished = f"    time.sleep(2)\n{TOUCH_OUTPUTS}"
    workflow.fake("measure", MEASURING.replace("    time.sleep(60)\n", finished))
    with terminal.Terminal(COMMAND, cwd=workflow.root) as on:
        on.until("it is measured")
        on.process.terminate()
        left = on.end()
    text = "\n".join(left)
    assert on.process.returncode == 1 and list(workflow.root.glob("results/default/raw/*"))
    assert INTERRUPTED in text
    assert "failed" not in text and "did not complete" not in text


FULL = """
import errno
import os

from snakemake.cli import main
from snakemake.persistence.file import FilePersistence


def refuse(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


os.posix_fallocate = FilePersistence._write_locks = refuse
main(["--cores", "1", "measurements"])
"""


def test_a_disk_without_room_for_snakemake_itself_is_told_at_the_end(workflow):
    done = subprocess.run(
        [sys.executable, "-c", FULL], cwd=workflow.root, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        "The disk is full. Free some space and run the same command again: "
    )
