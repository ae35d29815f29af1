"""Tests of the lists of measured cells, from which the tables are made."""

import json

import pytest

from perseus.results.measured import folders, write

CELLS = ("cpu1.b.peak.r10", "cpu1.b.peak.r2", "cpu1.a.peak.r1")  # in the order of the study


@pytest.fixture
def cells(tmp_path):
    made = [tmp_path / "results/study/raw" / name for name in CELLS]
    for cell in made:
        cell.mkdir(parents=True)
        (cell / "record.json").write_text(json.dumps({"task": cell.name, "outcome": "ok"}))
    return made


def listed(cells, name):
    path = cells[0].parents[1] / "measured" / f"{name}.json"
    write(path, cells)
    return path


def test_the_folders_of_all_lists_come_in_the_order_of_the_study(cells):
    lists = [str(listed(cells[:2], "peak")), str(listed(cells[2:], "soak"))]
    assert folders(lists) == cells
    assert folders(reversed(lists)) == [cells[2], *cells[:2]]


def test_a_cell_that_was_measured_again_makes_another_list(cells):
    """For a file this small, Snakemake compares the content, not only the time."""
    path = listed(cells, "peak")
    before = path.read_bytes()
    assert listed(cells, "peak").read_bytes() == before
    (cells[1] / "record.json").write_text(json.dumps({"task": CELLS[1], "outcome": "unsteady"}))
    assert listed(cells, "peak").read_bytes() != before
