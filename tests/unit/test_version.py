"""Tests that all files contain the same version."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from perseus.host.version import VERSION

ROOT = Path(__file__).parents[2]


def newest_release():
    """Return the version and the date of the newest release in the changelog."""
    changelog = (ROOT / "CHANGELOG.md").read_text()
    return re.search(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", changelog, re.M).groups()


def test_package_citation_and_changelog_have_the_same_version_and_date():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert project["version"] == VERSION
    assert citation["version"] == VERSION
    assert newest_release() == (VERSION, str(citation["date-released"]))


@pytest.mark.parametrize("script", ["exporter.py", "again.py", "carried/pack.py"])
def test_a_script_prints_the_version(script):
    run = subprocess.run(
        [sys.executable, ROOT / "scripts" / script, "--version"],
        # the PYTHONPATH that pack.py requires
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")},
        capture_output=True,
        text=True,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, f"Perseus {VERSION}\n", "")
