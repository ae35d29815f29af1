"""What a job says, and what it keeps from the terminal."""

import subprocess
import sys
from pathlib import Path

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


def test_what_libraries_print_goes_to_the_log_alone(tmp_path):
    log = tmp_path / "tables.log"
    done = subprocess.run(
        [sys.executable, "-c", JOB, log],
        env={"PYTHONPATH": str(SCRIPTS)},
        capture_output=True,
        text=True,
        check=True,
    )
    told = "[tables    0 s] half done"
    assert done.stdout == "after the job\n"
    assert done.stderr == f"{told}\n"
    said = {"by a library", "by Python", "by a process", told}
    assert set(log.read_text().splitlines()) == said
