"""Tests that Perseus finds the files whose records (of Snakemake) are truncated."""

import os

import pytest
from snakemake.persistence.file import FilePersistence

from perseus.host.truncated_files import RECORDS, with_truncated_record

# Snakemake writes the record of a long path into nested folders
LONG = f"results/study/raw/{'a_cell_of_many_tenants.' * 10}r1/record.json"
PATHS = ("results/study/report.html", LONG, "results/other/report.html")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder of a workflow with its files and Snakemake's record of each file."""
    monkeypatch.chdir(tmp_path)
    snakemake = FilePersistence(nolock=True)
    for path in PATHS:
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).touch()
        snakemake._io_write(str(tmp_path / RECORDS), {"rule": "one", "input": []}, path)
    return tmp_path


def cut(folder):
    """Truncate all records, and return their paths."""
    records = [path for path in (folder / RECORDS).rglob("*") if path.is_file()]
    for path in records:
        os.truncate(path, path.stat().st_size - 1)
    return records


def test_whole_records_are_of_files_that_need_nothing(folder):
    assert with_truncated_record(folder, ["results"]) == []


def test_files_in_these_places_whose_records_are_cut_are_found_with_long_names_too(folder):
    assert len(cut(folder)) == 3
    assert sorted(with_truncated_record(folder, ["results/study"])) == sorted(PATHS[:2])


def test_files_that_are_not_there_and_records_of_nothing_are_not(folder):
    cut(folder)
    (folder / PATHS[0]).unlink()
    (folder / RECORDS / "no base64").touch()
    (folder / RECORDS / "cut").touch()
    assert set(with_truncated_record(folder, ["results"])) == set(PATHS[1:])


def test_a_folder_with_cut_records_has_none_that_are_cut(tmp_path):
    assert with_truncated_record(tmp_path, ["results"]) == []
