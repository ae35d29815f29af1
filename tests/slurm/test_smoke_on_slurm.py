"""Tests of a study on Slurm: each measurement is alone on its node, and writes the same files,
columns and keys as a local run."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import one_node
import pyarrow.parquet as pq
import pytest
from conftest import CELL, CPUS, left_behind, locally

from perseus.results.check import check

MEASURING = ("rule_measure", "rule_ceiling")


@pytest.fixture(scope="module")
def jobs(finished) -> list[dict[str, str]]:
    """Return the jobs of the study in Slurm's records."""
    return [job for job in one_node.jobs() if job["WorkDir"] == str(finished)]


def measuring(jobs):
    return [job for job in jobs if job["Comment"].startswith(MEASURING)]


def test_everything_is_there_and_nothing_contradicts(finished):
    check(finished / "results" / "smoke" / "tables", {})
    assert (finished / "results" / "smoke" / "report.html").stat().st_size > 10_000
    assert left_behind(finished) == []


def test_a_measurement_has_all_cpus_of_its_node_and_shares_it_with_nobody(jobs):
    assert len(measuring(jobs)) == 3, "two cells and the ceiling"
    for job in measuring(jobs):
        assert job["JobState"] == "COMPLETED"
        assert (job["OverSubscribe"], job["NumCPUs"]) == ("NO", str(CPUS))
    others = [job for job in jobs if job not in measuring(jobs)]
    assert others and all(job["OverSubscribe"] != "NO" for job in others)


def test_nothing_ran_beside_a_measurement(finished, jobs):
    """Slurm's times are whole seconds: a job may start in the second in which another ends."""
    for job, other in itertools.permutations(jobs, 2):
        if job in measuring(jobs):
            assert other["EndTime"] <= job["StartTime"] or job["EndTime"] <= other["StartTime"]
    spans = []
    for path in (finished / "results/smoke/raw").glob("*/record.json"):
        record = json.loads(path.read_text())
        spans.append((record["started"]["monotonic_ns"], record["finished_monotonic_ns"]))
    spans.sort()
    assert len(spans) == 2
    assert all(end < start for (_, end), (start, _) in itertools.pairwise(spans))


def test_repositories_are_one_job_and_so_is_what_follows_the_measurements(jobs):
    others = sorted(job["Comment"] for job in jobs if job not in measuring(jobs))
    assert [name.split("_")[1] for name in others] == ["evaluation", "export", "repositories"]


def test_server_and_client_have_the_nodes_cores_between_them(finished):
    records = list((finished / "results/smoke/raw").glob("*/record.json"))
    assert len(records) == 2
    for path in records:
        host = json.loads(path.read_text())["host"]
        assert sorted(host["server_cores"] + host["client_cores"]) == list(range(CPUS))
        assert len(host["server_cores"]) == 1


def test_a_local_run_has_nothing_left_to_do(finished):
    done = locally(finished, "--dry-run", "all")
    assert done.returncode == 0 and "Nothing to be done" in done.stdout, done.stdout


def test_a_cell_has_the_files_columns_and_keys_of_a_local_run(finished, tmp_path):
    root, folder = tmp_path / "local", f"results/smoke/raw/{CELL}"
    shutil.copytree(finished, root, symlinks=True)
    shutil.rmtree(root / folder)
    done = locally(root, folder)
    assert done.returncode == 0, done.stdout
    assert shape(finished / folder) == shape(root / folder)


def shape(folder: Path) -> dict[str, object]:
    """Return the files of a cell with their columns or keys, without measured values."""
    found: dict[str, object] = {path.name: None for path in folder.iterdir()}
    for path in folder.glob("*.parquet"):
        found[path.name] = pq.read_schema(path).remove_metadata()
    found["record.json"] = keys(json.loads((folder / "record.json").read_text()))
    return found


def keys(value: object) -> object:
    return {key: keys(item) for key, item in value.items()} if isinstance(value, dict) else None
