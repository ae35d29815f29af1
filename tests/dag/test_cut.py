"""Tests that Perseus makes outputs again that a crash truncated, and all outputs that depend on
them."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from base64 import urlsafe_b64encode

from perseus.host.files import seal

RAW = "results/edits/raw/cpu1.shared.mix-3-1.r1"
PEAKS = [f"results/edits/raw/cpu1.{model}.peak.r1" for model in ("resnet18", "mobilenet_v3_large")]


def cut(workflow, path):
    """Truncate a file as a crash does: only half of the written file has reached the disk."""
    file = workflow.root / path
    seal(file)
    seen = file.stat()
    os.truncate(file, seen.st_size // 2)
    os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))


def planned(workflow, target="all"):
    """Return the number of jobs per rule in a dry run, which also shows incomplete outputs."""
    code, output, errors = workflow.plan(target)
    assert code == 0, errors
    jobs = dict(re.findall(r"^(\w+) +(\d+)$", output + errors, re.MULTILINE))
    return {rule: int(n) for rule, n in jobs.items() if rule not in ("all", "total")}


def test_raw_results_in_part_are_measured_again(edited):
    """A different file of each of the three cells is truncated."""
    figures = len([job for job in edited.jobs() if job[0] == "figure"])
    files = [f"{RAW}/requests.parquet", f"{PEAKS[0]}/record.json", f"{PEAKS[1]}/windows.parquet"]
    for file in files:
        cut(edited, file)
    _, _, errors = edited.plan()
    assert all(f"{file} was truncated after it was written" in errors for file in files)
    made = ("measured", "predictions", "tables", "check_tables", "report")
    after = {"measure": 3, **dict.fromkeys(made, 1), "figure": figures}
    assert planned(edited) == after  # a second dry run plans the same jobs
    edited.run("--cores", "2", "all")
    assert planned(edited) == {}
    assert all((edited.root / file).read_text().endswith("}") for file in files)


def test_raw_results_of_which_nothing_is_left_are_measured_again_whatever_was_noted(edited):
    os.truncate(edited.root / RAW / "windows.parquet", 0)  # without a recorded size of the file
    assert planned(edited)["measure"] == 1


def test_raw_results_on_another_disk_are_looked_at_too(edited, tmp_path):
    raw = edited.root / "results/edits/raw"
    shutil.move(raw, tmp_path / "scratch")
    raw.symlink_to(tmp_path / "scratch")
    assert planned(edited) == {}
    cut(edited, f"{RAW}/windows.parquet")
    assert planned(edited)["measure"] == 1


def test_a_cell_of_which_a_file_was_lost_is_measured_again(edited):
    """Snakemake itself checks only the folder of the cell, not the files in the folder."""
    lost = [f"{PEAKS[0]}/record.json", f"{PEAKS[1]}/windows.parquet"]
    for file in lost:
        (edited.root / file).unlink()
    _, _, errors = edited.plan()
    assert all(f"{file} is missing: Snakemake makes it again" in errors for file in lost)
    assert planned(edited)["measure"] == 3  # the mix depends on both peaks
    edited.run("--cores", "2", "all")
    assert planned(edited) == {} and all((edited.root / file).is_file() for file in lost)


def test_a_repository_in_part_is_made_again_with_what_was_measured_on_it(edited):
    cut(edited, "model_repository/edits/cpu1.shared/made.json")
    after = planned(edited)
    assert (after["repository"], after["measure"]) == (1, 1)
    edited.run("--cores", "2", "all")
    assert planned(edited) == {}


def test_folders_that_an_earlier_version_made_file_by_file_are_made_again(edited):
    """The folders are there, but Snakemake has not marked them as its outputs."""
    (edited.root / RAW / ".snakemake_timestamp").unlink()
    assert planned(edited)["measure"] == 1 and "repository" not in planned(edited)
    (edited.root / "model_repository/edits/cpu1.shared/.snakemake_timestamp").unlink()
    assert planned(edited)["repository"] == 1


def test_what_a_job_that_runs_is_about_to_write_is_not_lost(edited):
    """Snakemake marks the folder that a running job writes. A dry run reports no missing file in a
    marked folder."""
    (edited.root / RAW / "record.json").unlink()
    mark = edited.root / ".snakemake/incomplete" / urlsafe_b64encode(RAW.encode()).decode()
    mark.write_text("{}")
    assert "record.json is missing" not in edited.plan()[2]


def test_a_cell_that_has_gone_is_measured_again_whatever_else_changed(edited):
    """The folder of one cell is missing, as after a forced job that failed. The folders of other
    cells are complete."""
    shutil.rmtree(edited.root / RAW)
    again = ("measure", "measured", "tables")
    assert [planned(edited)[rule] for rule in again] == [1, 1, 1]
    edited.edit("config/prices.csv", "us-central1-a,0.0475,", "us-central1-a,0.0999,")
    assert [planned(edited)[rule] for rule in again] == [1, 1, 1]
    edited.run("--cores", "2", "all")
    assert planned(edited) == {} and (edited.root / RAW / "record.json").is_file()


def test_a_look_at_an_edit_leaves_everything_as_it_was(edited):
    """A user adds a mix to the configuration, calls a dry run, and reverts the edit."""
    before = (edited.root / "config/config.yaml").read_text()
    edited.edit("config/config.yaml", "[3, 1]", "[3, 1], [1, 3]")
    assert planned(edited)["measure"] == 1
    (edited.root / "config/config.yaml").write_text(before)
    assert planned(edited) == {}


def test_a_figure_in_part_is_drawn_again_and_nothing_else(edited):
    cut(edited, "results/edits/figures/peaks.svg")
    assert planned(edited) == {"figure": 1, "report": 1}


def test_the_copy_of_a_table_for_people_in_part_is_made_again(edited):
    cut(edited, "results/edits/tables/peaks.csv")
    assert planned(edited)["tables"] == 1 and "measure" not in planned(edited)


def test_what_somebody_wrote_anew_stays(edited):
    path = edited.root / "results/edits/figures/peaks.svg"
    seal(path)
    path.write_text("<svg/>")
    assert "figure" not in planned(edited)


def test_an_archive_in_part_is_packed_again(edited):
    edited.run("--cores", "2", "pack")
    assert planned(edited, "pack") == {}
    cut(edited, "results/edits.tar.gz")
    assert planned(edited, "pack") == {"pack": 1}


def record_of(workflow, path):
    """Return the path of Snakemake's record of how a file was made."""
    return workflow.root / ".snakemake/metadata" / urlsafe_b64encode(path.encode()).decode()


def test_what_lost_the_record_of_how_it_was_made_is_made_again(edited):
    """Without its record of a cell, Snakemake would not notice an edit that affects the cell."""
    for cell, bytes_left in zip((RAW, *PEAKS), (0, 100, -1), strict=True):
        record = record_of(edited, cell)
        os.truncate(record, bytes_left if bytes_left >= 0 else record.stat().st_size - 1)
    _, _, errors = edited.plan()
    assert all(f"record of {cell} is truncated" in errors for cell in (RAW, *PEAKS))
    assert planned(edited)["measure"] == 3
    edited.run("--cores", "2", "all")
    assert planned(edited) == {}


def test_a_record_of_a_file_that_is_no_output_any_more_tells_nothing(edited):
    """Records of single files remain from an earlier version of Perseus. No job writes such records
    now."""
    record_of(edited, f"{RAW}/windows.parquet").touch()
    assert planned(edited) == {}


def test_a_record_that_a_living_run_may_be_writing_is_left_alone(edited):
    os.truncate(record_of(edited, RAW), 0)
    with (edited.root / ".snakemake/perseus.live").open("a") as live:
        fcntl.flock(live, fcntl.LOCK_SH)
        assert "measure" not in planned(edited)
    assert planned(edited)["measure"] == 1
