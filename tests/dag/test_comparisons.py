"""Tests that a comparison measures no cell of any study, and that packing needs all its results."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import synthetic
import synthetic_files
from workflow_files import ROOT

from perseus.host.files import seal

TRUTH = synthetic.Truth(synthetic.TRUTH.capacities, repeats=2)
SLOWER = {name: rps / 2 for name, rps in TRUTH.capacities.items()}


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """Return folders of results that belong to no workflow."""
    root = tmp_path_factory.mktemp("elsewhere")
    mixes = {"mixes": [(1, 1)], "holds": ()}
    slower = synthetic.Truth(SLOWER, repeats=2)
    return {
        "base": synthetic_files.write_study(root / "base", synthetic.records(TRUTH, 1, **mixes)),
        "same": synthetic_files.write_study(root / "same", synthetic.records(TRUTH, 2, **mixes)),
        "slower": synthetic_files.write_study(root / "slow", synthetic.records(slower, 2, **mixes)),
    }


def asked(studies, base="base", new="same"):
    return ("--config", f"base={studies[base]}", f"new={studies[new]}")


def counts(output):
    found = {
        rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE)
    }
    found.pop("total", None)
    return found


def test_only_the_comparison_is_planned(empty, studies):
    for target, jobs in (
        ("compare", {"compare": 1}),
        ("compare_gate", {"compare": 1, "compare_gate": 1}),
    ):
        code, output, errors = empty.plan(target, *asked(studies))
        assert code == 0, errors
        assert counts(output + errors) == jobs


def test_what_is_compared_makes_nothing_of_a_study_stale(edited, studies):
    assert edited.stale(*asked(studies)) == set()


def test_a_comparison_is_made_again_only_when_what_it_reads_has_changed(edited, studies, tmp_path):
    copy = synthetic_files.write_study(
        tmp_path / "new", synthetic.records(TRUTH, 3, mixes=[(1, 1)], holds=())
    )
    keys = ("--config", f"base={studies['base']}", f"new={copy}")
    edited.run("--cores", "1", "compare", *keys)
    assert (edited.root / "results/compare/base-new/summary.md").exists()
    code, output, errors = edited.plan("compare", *keys)
    assert code == 0 and "Nothing to be done" in output + errors
    synthetic_files.write_study(copy, synthetic.records(TRUTH, 4, mixes=[(1, 1)], holds=()))
    code, output, errors = edited.plan("compare", *keys)
    assert counts(output + errors) == {"compare": 1}


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_comparison_in_part_is_made_again_also_for_the_gate(empty, studies, tmp_path, elsewhere):
    workflow = empty.copy(tmp_path / "workflow")
    workflow.fake("compare_gate", "")
    keys = (*asked(studies), *([f"out={tmp_path}/here"] if elsewhere else []))
    workflow.run("--cores", "1", "compare", *keys)
    folder = f"{tmp_path}/here" if elsewhere else "results/compare/base-same"
    names = ("comparison.parquet", "comparison.csv", "summary.md")
    files = [workflow.root / folder / name for name in names]
    for file in files:
        seal(file)
        os.truncate(file, file.stat().st_size // 2)
    for target, jobs in (("compare", {}), ("compare_gate", {"compare_gate": 1})):
        code, output, errors = workflow.plan(target, *keys)
        told = [f"{folder}/{name} was truncated after it was written" in errors for name in names]
        assert code == 0 and all(told)
        assert counts(output + errors) == {"compare": 1, **jobs}
    workflow.run("--cores", "1", "compare_gate", *keys)
    assert all(file.read_text().endswith("}") for file in files)
    code, output, errors = workflow.plan("compare", *keys)
    assert "Nothing to be done" in output + errors


def test_a_comparison_that_lost_the_record_of_how_it_was_made_is_made_again(
    empty, studies, tmp_path
):
    workflow = empty.copy(tmp_path / "workflow")
    workflow.run("--cores", "1", "compare", *asked(studies))
    for record in (workflow.root / ".snakemake/metadata").iterdir():
        os.truncate(record, 10)
    code, output, errors = workflow.plan("compare", *asked(studies))
    summary = "results/compare/base-same/summary.md"
    assert f"{summary} is truncated: Snakemake makes the file again" in errors
    assert code == 0 and counts(output + errors) == {"compare": 1}


@pytest.mark.parametrize(
    ("keys", "messages"),
    [
        (("base=/nowhere", "new=/none.tar.gz"), ["base: /nowhere: there is no such", "new: /none"]),
        (("base=.",), ["base: .: it has no tables/peaks.parquet", "new is missing"]),
        (("out=a",), ["base is missing", "new is missing"]),
    ],
    ids=["nowhere", "no results", "nothing"],
)
def test_what_cannot_be_compared_is_said_before_any_job(empty, keys, messages):
    code, output, errors = empty.plan("compare", "--config", *keys)
    assert code == 1 and "Traceback" not in output + errors
    for line in messages:
        assert line in output + errors


def test_without_anything_to_compare_it_says_what_to_name(empty):
    code, output, errors = empty.plan("compare")
    assert code == 1 and "Traceback" not in output + errors
    assert "name what to compare: --config base=" in output + errors


def test_packing_needs_the_whole_study_but_no_requests(edited):
    code, output, errors = edited.plan("pack")
    assert code == 0 and counts(output + errors) == {"pack": 1}
    edited.run("--cores", "1", "pack")
    assert (edited.root / "results/edits.tar.gz").exists()


def real(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the real workflow, with results in another folder."""
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--cores", "1"]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [*command, *arguments], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip


def test_a_gate_that_fails_leaves_what_was_written(studies, tmp_path):
    done = real(tmp_path, "compare_gate", *asked(studies, new="slower"))
    text = done.stdout + done.stderr
    assert done.returncode == 1 and "Traceback" not in text
    assert "gate: worse than the base (results/compare/base-slow/summary.md):" in text
    assert "Study 'default'" not in text and "Run the same command again" not in text
    made = {path.name for path in (tmp_path / "results/compare/base-slow").iterdir()}
    assert {"summary.md", "comparison.csv", "comparison.svg"} <= made


def test_a_gate_that_holds(studies, tmp_path):
    done = real(tmp_path, "compare_gate", *asked(studies), f"out={tmp_path}/here")
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    assert "synthetic against synthetic: " in text
    assert f"The comparison: {tmp_path}/here/comparison.html" in text
    assert f"The summary for a pull request: {tmp_path}/here/summary.md" in text
    assert "The report of study" not in text
    assert not (tmp_path / "results").exists()


def test_the_script_packs_what_compare_reads(edited):
    """The real scripts list and pack the files that fake steps have made."""
    for name in ("measured.py", "pack_results.py"):
        (edited.root / "scripts" / name).write_text((ROOT / "scripts" / name).read_text())
    edited.run("--cores", "1", "pack")
    with tarfile.open(edited.root / "results/edits.tar.gz") as packed:
        names = set(packed.getnames())
    assert "edits/tables/peaks.parquet" in names and "edits/report.html" in names
    assert "edits/models/resnet18/check.json" in names
    assert any(name.endswith("/record.json") for name in names)
    assert not any(name.endswith(("requests.parquet", "monitor.parquet")) for name in names)
