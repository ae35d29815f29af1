"""Tests of the output of a job: what reaches the terminal, and what only the log contains."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[3] / "scripts"
JOB = """
import ctypes, subprocess, sys
from perseus.host.job import job

with job(sys.argv[1]) as say:
    ctypes.CDLL(None).printf(b"by a library\\n")  # buffered by C until the process ends
    print("by Python")
    subprocess.run(["echo", "by a process"])
    say("half done")
ctypes.CDLL(None).printf(b"after the job\\n")
"""


def ran(code, log):
    """Run a job, and return its ended process."""
    return subprocess.run(
        [sys.executable, "-c", code, log],
        env={"PYTHONPATH": str(SCRIPTS)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_libraries_print_goes_to_the_log_alone(tmp_path):
    log = tmp_path / "tables.log"
    done = ran(JOB, log)
    told = "[tables    0 s] half done"
    assert done.returncode == 0 and done.stdout == "after the job\n"
    assert done.stderr == f"{told}\n"
    text = {"by a library", "by Python", "by a process", told}
    assert set(log.read_text().splitlines()) == text


FAILS = """
import sys
from perseus.host.job import job

with job(sys.argv[1]) as say:
    say("half done")
    {fails}
"""


def failed(log, fails):
    """Return the exit code and the standard error of a job that fails with this code."""
    done = ran(FAILS.format(fails=fails), log)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "fails",
    [
        "import pyarrow; pyarrow.OSFile('/dev/full', 'wb').write(b'a table')",
        "import os; os.write(os.open('/dev/full', os.O_WRONLY), b'a line')",
    ],
)
def test_a_full_disk_is_said_in_a_sentence_and_once_more_at_the_end(tmp_path, fails):
    code, output = failed(tmp_path / "tables.log", fails)
    assert code == 1 and "Traceback" not in output
    told = output.split("half done")[1].strip()
    assert told.startswith("tables: the disk is full (") and "run the same command again" in told
    assert (tmp_path / "tables.error").read_text().strip() == told


def test_a_full_disk_below_the_log_is_said_too(tmp_path):
    log = tmp_path / "tables.log"
    log.symlink_to("/dev/full")
    code, output = failed(log, "pass")
    assert code == 1 and "Traceback" not in output and "tables: the disk is full (" in output


def test_any_other_failure_is_a_fault_and_keeps_its_traceback(tmp_path):
    code, output = failed(tmp_path / "tables.log", "open('/nowhere')")
    assert code == 1 and "Traceback" in output and not (tmp_path / "tables.error").exists()


REFUSES = """
import sys
from perseus.host.job import job

with job(sys.argv[1], ValueError):
    raise ValueError("no \\u00e9t\\u00e9\\n  of \\033[31mred")
"""


def test_what_a_library_says_of_a_users_file_cannot_write_to_the_terminal(tmp_path):
    done = ran(REFUSES, tmp_path / "own_onnx.log")
    told = "own_onnx: no \u00e9t\u00e9\n  of \\x1b[31mred"
    assert done.returncode == 1 and done.stderr.strip() == told
    assert (tmp_path / "own_onnx.error").read_text().strip() == told
    assert (tmp_path / "own_onnx.log").read_text().strip() == told
