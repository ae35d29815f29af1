"""Tests that a task with parts from another repeat equals the task that is made for the cell
alone."""

from itertools import islice
from pathlib import Path

import pytest
import yaml

from perseus.study import planning, provenance
from perseus.study.fingerprint import Sources
from perseus.study.measure_tasks import MeasureTasks
from perseus.study.read import read_study

ROOT = Path(__file__).parents[3]
SOURCES = Sources(ROOT / "scripts")
STUDIES = sorted((ROOT / "config" / "studies").glob("*.yaml"))


def study_of(path, **measurement):
    asked = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
    asked |= yaml.safe_load(path.read_text())
    asked["measurement"] = asked.get("measurement", {}) | measurement
    return read_study(asked, prices=ROOT / "config" / "prices.csv", folder=ROOT)


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_cell_has_the_task_the_code_and_the_versions_that_it_has_alone(path):
    """The order of the keys is also equal, since Snakemake compares values as text."""
    study = study_of(path, repeats=3)
    tasks = MeasureTasks(study, SOURCES)
    for name, cell in islice(study.cells.items(), 300):
        alone = planning.measure_task(study, cell)
        assert tasks.task(name) == alone and type(tasks.task(name)) is type(alone)
        assert repr(tasks.task(name)) == repr(alone)
        assert repr(tasks.plain(name)) == repr(alone.plain())
        assert tasks.code(name) == provenance.measure_code(SOURCES, alone)
        assert repr(tasks.versions(name)) == repr(provenance.measure_versions(alone))


def test_repeats_have_tasks_of_their_own():
    """Tasks do not depend on the order of the calls, and a call does not change earlier tasks."""
    study = study_of(ROOT / "config" / "studies" / "paper.yaml", repeats=3)
    tasks = MeasureTasks(study, SOURCES)
    cells = list(study.cells)
    plain = {name: tasks.plain(name) for name in reversed(cells)}
    assert [plain[name]["cell"] for name in cells] == cells
    assert {plain[name]["repeat"] for name in cells} == {1, 2, 3}
    assert [tasks.task(name).cell for name in cells] == cells
    assert plain == {name: tasks.plain(name) for name in cells}
