"""Accounts in containers: a user id without a name, or a missing or read-only home folder."""

import os
import subprocess
import sys

import pytest
from workflow_files import ROOT

# Run Snakemake under a user id without a name: pwd.getpwuid raises KeyError.
WITHOUT_NAME = """
import pwd

from snakemake.cli import main


def unknown(uid):
    raise KeyError(f"getpwuid(): uid not found: {uid}")


pwd.getpwuid = unknown
main(["--cores", "2", "measurements"])
"""
PRINT = 'print: ; @printf "%s\\n" "$$USER" "$$HOME" "$$XDG_CACHE_HOME"'


def test_a_user_id_without_a_name_runs_the_workflow(empty, tmp_path):
    workflow = empty.copy(tmp_path / "workflow")
    names = ("LOGNAME", "USER", "LNAME", "USERNAME")
    environment = {name: os.environ[name] for name in os.environ if name not in names}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_NAME],
        cwd=workflow.root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("environment", "made"),
    [
        ({}, ("{uid}", "{root}/.snakemake", "{root}/.snakemake/.cache")),
        ({"HOME": "/proc"}, ("{uid}", "/proc", "{root}/.snakemake/cache")),
        ({"USER": "me", "HOME": "{home}"}, ("me", "{home}", "{home}/.cache")),
        (
            {"USER": "me", "HOME": "/proc", "XDG_CACHE_HOME": "{home}"},
            ("me", "/proc", "{home}"),
        ),
    ],
    ids=["nothing", "a home that cannot be written", "a whole account", "a cache folder"],
)
def test_make_sets_what_an_account_lacks(tmp_path, environment, made):
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    places = {"uid": os.getuid(), "root": tmp_path, "home": tmp_path / "home"}
    given = {name: value.format(**places) for name, value in environment.items()}
    printed = subprocess.run(
        ["make", "--silent", f"--eval={PRINT}", "print"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]} | given,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed.splitlines() == [value.format(**places) for value in made]
