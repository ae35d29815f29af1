"""The messages of a run about cells without a result, and the cells that `make again` measures."""

import json

import pytest

RESNET, MOBILENET, MIX = "resnet18.peak", "mobilenet_v3_large.peak", "shared.mix-3-1"


def record_of(workflow, cell):
    return workflow.root / f"results/edits/raw/cpu1.{cell}.r1/record.json"


def ends(workflow, cell, outcome, reason):
    """Write the record of a cell as if its measurement had ended with this outcome."""
    record_of(workflow, cell).write_text(json.dumps({"outcome": outcome, "reason": reason}))
    (record_of(workflow, cell).parent / ".snakemake_timestamp").touch()  # as Snakemake does


@pytest.fixture(scope="module")
def blocked(finished, tmp_path_factory):
    """Return (workflow, output) of a study in which a missing dedicated peak blocks the mix."""
    workflow = finished.copy(tmp_path_factory.mktemp("blocked") / "workflow")
    ends(workflow, RESNET, "unsteady", "it changed its speed")
    assert ("measure", f"cpu1.{MIX}.r1") in workflow.stale()
    workflow.accept()
    ends(workflow, MIX, "blocked", "not found: cpu1.resnet18.peak.r1 (unsteady)")
    return workflow, workflow.run("--cores", "2", "all")


def test_the_last_lines_say_which_cells_have_no_answer_why_and_what_to_do(blocked):
    last = blocked[1].splitlines()[-5:]
    assert last == [
        "2 of 3 cells have no result:",
        "  cpu1.resnet18.peak.r1: unsteady: it changed its speed",
        "  cpu1.shared.mix-3-1.r1: blocked: not found: cpu1.resnet18.peak.r1 (unsteady)",
        "To measure these cells and ceilings again, and all cells that depend on them, run: make"
        " again, or your command with",
        "  --forcerun results/edits/raw/cpu1.resnet18.peak.r1",
    ]


def test_a_run_that_finds_nothing_to_do_says_so_again(blocked):
    assert blocked[0].run("--cores", "2", "all").splitlines() == blocked[1].splitlines()[-5:]


def test_again_measures_these_and_what_depends_on_them(blocked, tmp_path):
    workflow = blocked[0].copy(tmp_path / "workflow")
    before = record_of(workflow, MOBILENET).stat().st_mtime_ns
    output = workflow.python("scripts/again.py", "--cores", "2")
    assert output.startswith(
        "snakemake --cores 2 all --forcerun results/edits/raw/cpu1.resnet18.peak.r1\n"
    )
    for cell in (RESNET, MIX):
        assert json.loads(record_of(workflow, cell).read_text())["outcome"] == "ok"
    assert record_of(workflow, MOBILENET).stat().st_mtime_ns == before
    assert "no result" not in output and workflow.stale() == set()
    assert "no cell has a temporary failure" in workflow.script("scripts/again.py")


def test_what_another_measurement_would_not_change_is_said_and_left(edited):
    ends(edited, MIX, "blocked", "not found: cpu1.resnet18.peak.r1 (infeasible)")
    output = edited.run("--cores", "2", "all")
    assert "1 of 3 cells have no result:" in output and "--forcerun" not in output
    assert "no cell has a temporary failure" in edited.script("scripts/again.py")


def test_a_ceiling_that_others_disturbed_and_a_record_that_is_cut_are_measured_again(edited):
    ceiling = edited.root / "results/edits/ceilings/cpu1.json"
    ceiling.write_text(json.dumps({"shapes": [{"disturbed": ""}, {"disturbed": "so much else"}]}))
    record_of(edited, RESNET).write_text('{"outcome": "o')
    last = edited.run("--cores", "2", "all").splitlines()[-5:]
    assert last == [
        "1 of 3 cells have no result:",
        "  cpu1.resnet18.peak.r1: failed: its result file cannot be read",
        "The measurement of the client ceiling for cpu1 was disturbed: so much else",
        "To measure these cells and ceilings again, and all cells that depend on them, run: make"
        " again, or your command with",
        "  --forcerun results/edits/raw/cpu1.resnet18.peak.r1 results/edits/ceilings/cpu1.json",
    ]
    edited.script("scripts/again.py", "--cores", "2")
    assert "shapes" not in ceiling.read_text()
    assert "no cell has a temporary failure" in edited.script("scripts/again.py")


def test_a_reason_with_characters_that_the_terminal_lacks_does_not_stop_the_run(
    edited, monkeypatch
):
    ends(edited, RESNET, "unsteady", "it became 2 \N{MULTIPLICATION SIGN} slower")
    edited.accept()
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    output = edited.python("-m", "snakemake", "--cores", "2", "all")
    assert "  cpu1.resnet18.peak.r1: unsteady: it became 2 ? slower\n" in output


def test_what_to_do_names_the_file_that_configures_the_study(edited):
    ends(edited, RESNET, "unsteady", "it changed its speed")
    edited.accept()
    (edited.root / "same.yaml").write_text("study: edits\n")
    for asked, what in (
        (["--configfile", "same.yaml"], "make again CONFIGFILE=same.yaml, or your command with"),
        (["--config", "study=edits"], "your command with"),
    ):
        output = edited.run("--cores", "2", "all", *asked)
        assert f"and all cells that depend on them, run: {what}\n" in output


def test_another_study_and_one_with_a_mistake(edited):
    other = edited.root / "other.yaml"
    other.write_text("study: other\n")
    output = edited.script("scripts/again.py", "--configfile", "other.yaml")
    assert output.startswith("Study 'other': no cell")
    record = edited.root / "results/other/raw/cpu1.resnet18.peak.r1/record.json"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"outcome": "failed", "reason": "the server died"}))
    output = edited.script("scripts/again.py", "--cores", "2", "--configfile", "other.yaml")
    where = "results/other/raw/cpu1.resnet18.peak.r1"
    assert output.startswith(
        f"snakemake --cores 2 all --configfile other.yaml --forcerun {where}\n"
    )
    for text, told in (
        (b"study: other\nseed: none\n", "seed: must be"),
        (b"study: other\nmodels: {}\n", "models: must be a list"),
        (b"study: caf\xe9\n", "other.yaml: 'utf-8' codec can't decode"),
    ):
        other.write_bytes(text)
        with pytest.raises(AssertionError, match=told) as failed:
            edited.script("scripts/again.py", "--configfile", "other.yaml")
        assert "Traceback" not in str(failed.value)


def test_a_damaged_default_study_is_named(edited):
    (edited.root / "config/config.yaml").write_text("study: [a\n")
    with pytest.raises(AssertionError, match=r"config/config\.yaml: ") as failed:
        edited.script("scripts/again.py")
    assert "Traceback" not in str(failed.value)
