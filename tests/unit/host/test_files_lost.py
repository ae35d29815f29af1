"""Folders of results that have lost a file."""

from perseus.host.cut_files import with_files_lost

NAMES = ("windows.parquet", "record.json")


def test_each_file_that_a_folder_has_lost_is_named_and_no_folder_that_is_not_there(tmp_path):
    for folder, names in (("whole", NAMES), ("empty", ()), ("half", NAMES[:1])):
        (tmp_path / folder).mkdir()
        for name in (*names, ".snakemake_timestamp"):
            (tmp_path / folder / name).touch()
    (tmp_path / "file").touch()
    places = [str(tmp_path / name) for name in ("whole", "empty", "half", "nowhere", "file")]
    lost = [f"{tmp_path}/empty/{name}" for name in NAMES] + [f"{tmp_path}/half/record.json"]
    assert list(with_files_lost(places, NAMES)) == lost
