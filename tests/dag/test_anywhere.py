"""Tests of the workflow in other folders, and as a module of other workflows.

Perseus finds code, defaults and prices beside its Snakefile, and writes results into the working
directory.
"""

import os
import subprocess
import sysconfig
import venv

import pytest
import yaml
from workflow_copy import Workflow

# A study that needs the defaults and the prices beside the Snakefile.
CHANGE = {"study": "elsewhere", "seed": 7}
MODEL = "results/default/models/squeezenet1_1/model.onnx"
MODULE = """\
{head}

module perseus:
    snakefile: "{snakefile}"
    {config}

use rule * from perseus{renamed}
"""
WHOLE = {
    "export": 2,
    "repository": 3,
    "ceiling": 1,
    "measure": 5,
    "predictions": 1,
    "tables": 1,
    "check_tables": 1,
    "figure": 11,
    "report": 1,
}


def counts(jobs, prefix=""):
    names = [job[0].removeprefix(prefix) for job in jobs]
    return {name: names.count(name) for name in names}


def files(workflow):
    """Return all paths in the folder of the workflow, except compiled code."""
    return {path for path in workflow.root.rglob("*") if "__pycache__" not in path.parts}


@pytest.fixture
def elsewhere(tmp_path):
    """Return a workflow in an empty folder, without files of Perseus."""
    root = tmp_path / "elsewhere"
    root.mkdir()
    return Workflow(root)


@pytest.fixture
def module(empty, elsewhere):
    """Return a function that makes `elsewhere` a workflow that uses Perseus as a module."""

    def write(head="", config="config: config", renamed=""):
        snakefile = empty.root / "Snakefile"
        text = MODULE.format(head=head, config=config, snakefile=snakefile, renamed=renamed)
        (elsewhere.root / "Snakefile").write_text(text)
        return elsewhere

    return write


@pytest.mark.parametrize("option", ["--directory", "-d"])
def test_from_a_third_folder_into_another(empty, elsewhere, tmp_path, option):
    """The folder in which the user runs the command does not matter."""
    third = Workflow(tmp_path)
    snakefile = str(empty.root / "Snakefile")
    assert counts(third.jobs("-s", snakefile, option, str(elsewhere.root), "all")) == WHOLE


def test_python_and_temporary_files_in_folders_with_spaces(empty, tmp_path):
    """A checkout may lie in a folder with spaces and accents, and its .venv too."""
    folder = tmp_path / "my été"
    workflow = empty.copy(folder / "checkout")
    venv.create(folder / "venv")
    (packages,) = (folder / "venv/lib").glob("python3*/site-packages")
    (packages / "these.pth").write_text(sysconfig.get_path("purelib"))
    (folder / "temporary").mkdir()
    run = [folder / "venv/bin/python", "-m", "snakemake", "--cores", "2", MODEL]
    done = subprocess.run(
        run,
        cwd=workflow.root,
        env={**os.environ, "TMPDIR": str(folder / "temporary")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "solver" not in done.stdout + done.stderr


def test_a_folder_that_accepts_no_files_is_named(empty, tmp_path):
    """A checkout may lie on a read-only medium, here /proc, where root cannot write either."""
    where = ["-s", str(empty.root / "Snakefile"), "-d", "/proc"]
    code, output, errors = Workflow(tmp_path)._snakemake("--cores", "2", "all", *where)
    assert code == 1
    assert "/proc accepts no files" in errors and f"snakemake -s {where[1]} -d FOLDER" in errors
    assert "Traceback" not in output + errors


def test_from_the_folder_of_the_results(empty, elsewhere):
    assert counts(elsewhere.jobs("-s", str(empty.root / "Snakefile"))) == WHOLE


def test_a_configuration_is_merged_over_that_beside_the_snakefile(empty, elsewhere, tmp_path):
    """The path of the configuration file may be relative to the folder of the command."""
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({**CHANGE, "measurement": {"repeats": 2}}))
    jobs = Workflow(tmp_path).jobs(
        *("-s", str(empty.root / "Snakefile")),
        *("-d", str(elsewhere.root), "--configfile", "mine.yaml"),
    )
    assert counts(jobs) == WHOLE | {"measure": 2 * WHOLE["measure"], "repeats": 2}


def test_files_that_the_configuration_names_lie_in_the_working_directory(empty, elsewhere):
    models = [
        {"name": "squeezenet1_1", "weights": "mine.pt", "sla": {"latency_ms": 120}},
        {"name": "mobilenet_v3_small", "images": "photos", "sla": {"latency_ms": 60}},
    ]
    (elsewhere.root / "study.yaml").write_text(yaml.safe_dump({"models": models}))
    (elsewhere.root / "mine.pt").write_bytes(b"weights")
    (elsewhere.root / "photos").mkdir()
    for number in range(4):
        (elsewhere.root / "photos" / f"{number}.jpg").write_bytes(b"photo")
    where = ["-s", str(empty.root / "Snakefile"), "--configfile", "study.yaml"]
    assert counts(elsewhere.jobs(*where)) == WHOLE


def test_a_run_elsewhere_leaves_the_folder_of_the_snakefile_alone(empty, elsewhere, tmp_path):
    before = files(empty)
    where = ["-s", str(empty.root / "Snakefile"), "-d", str(elsewhere.root)]
    Workflow(tmp_path).run("--cores", "2", "all", *where, "--config", "study=elsewhere")
    assert files(empty) == before
    assert (elsewhere.root / "results" / "elsewhere" / "report.html").is_file()
    assert Workflow(tmp_path).stale(*where, "--config", "study=elsewhere") == set()


def test_a_module(module):
    """The other workflow has no rules of its own, so its default target is that of Perseus."""
    assert counts(module().jobs()) == WHOLE


def test_a_module_with_a_configuration_of_its_own(module):
    """Perseus merges the dictionaries of the other workflow like those of a --configfile."""
    jobs = module(
        config="config: config['inference']",
        head="config['inference'] = {'study': 'elsewhere', 'measurement': {'repeats': 2}}",
    ).jobs("all")
    assert counts(jobs) == WHOLE | {"measure": 2 * WHOLE["measure"], "repeats": 2}


def test_a_module_without_a_configuration(module):
    assert counts(module(config="").jobs("all")) == WHOLE


def test_a_module_whose_rules_are_renamed(module):
    """With renamed rules, both workflows may have a rule `all`. The default target is the rule
    `all` of the other workflow."""
    head = 'rule all:\n    input: "results/default/tables/peaks.csv"\n'
    jobs = module(head=head, renamed=" as perseus_*").jobs()
    assert counts(jobs, "perseus_") == {
        rule: count
        for rule, count in WHOLE.items()
        if rule not in ("predictions", "check_tables", "figure", "report")
    }


def test_what_a_renamed_rule_has_measured_comes_from_no_cache(module, tmp_path, monkeypatch):
    monkeypatch.setenv("SNAKEMAKE_OUTPUT_CACHE", str(tmp_path))
    own = 'rule own:\n    output: "own.txt"\n    shell: "touch {output}"'
    outer = module(head=f"config['study'] = 'elsewhere'\n{own}", renamed=" as perseus_*")
    code, output, errors = outer.plan("perseus_all", "--cache", "perseus_measure")
    assert code == 1 and "--cache perseus_measure: " in output + errors
    code, output, errors = outer.plan("perseus_all", "--cache", "perseus_export", "own")
    assert code == 0, output + errors


def test_a_run_as_a_module(module, empty):
    before = files(empty)
    outer = module()
    outer.run("--cores", "2", "all")
    assert files(empty) == before
    assert (outer.root / "results" / "default" / "report.html").is_file()
    assert outer.stale("all") == set()


def test_a_mistake_in_the_configuration_of_a_module_is_named(module):
    code, output, errors = module(head="config['seeds'] = 3").plan("all")
    assert code == 1
    assert "seeds: unknown key (did you mean 'seed'?)" in output + errors
