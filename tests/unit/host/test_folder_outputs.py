"""Tests of outputs that are folders and have lost a file."""

from types import SimpleNamespace

from snakemake.io import IOFile
from snakemake.persistence.file import FilePersistence

from perseus.host.folder_outputs import files_lost, unfinished

NAMES = ("windows.parquet", "record.json")


def test_each_file_that_a_folder_has_lost_is_named_and_no_folder_that_is_not_there(tmp_path):
    for folder, names in (("whole", NAMES), ("empty", ()), ("half", NAMES[:1])):
        (tmp_path / folder).mkdir()
        for name in (*names, ".snakemake_timestamp"):
            (tmp_path / folder / name).touch()
    (tmp_path / "file").touch()
    places = [str(tmp_path / name) for name in ("whole", "empty", "half", "nowhere", "file")]
    lost = [f"{tmp_path}/empty/{name}" for name in NAMES] + [f"{tmp_path}/half/record.json"]
    assert list(files_lost(places, NAMES)) == lost


def test_what_snakemake_has_marked_is_left_to_it(tmp_path, monkeypatch):
    """Snakemake stores the marks of outputs with long names in subfolders."""
    monkeypatch.chdir(tmp_path)
    assert unfinished(tmp_path) == set()
    paths = ["results/study/raw/a.r1", f"results/study/raw/{'a_cell_of_many_tenants.' * 10}r1"]
    FilePersistence(nolock=True).started(SimpleNamespace(output=[IOFile(path) for path in paths]))
    assert unfinished(tmp_path) == set(paths)
