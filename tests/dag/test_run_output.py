"""The output of a run: one line per job, and the errors."""

import pytest

STARTED = """\
Study 'default': 5 of 5 cells to measure, about 5 min of load, at most 93 min. If a cell \
has a temporary failure, Perseus measures it a second time.
"""


def errors_of(workflow, *arguments):
    """Return the exit code, stdout, and stderr without the first messages of Snakemake."""
    code, output, errors = workflow._snakemake("--cores", "1", *arguments)
    return code, output, errors.partition("filesystem usage.\n")[2]


@pytest.mark.parametrize("quiet", [(), ("--quiet", "progress")])
def test_a_run_prints_one_line_for_each_job(empty, tmp_path, quiet):
    workflow = empty.copy(tmp_path / "workflow")
    code, output, errors = errors_of(workflow, "measurements", *quiet)
    assert (code, output) == (0, f"{STARTED}\n")
    lines = errors.split("\n")
    assert lines[0] == "" and lines[-3].startswith("Complete log(s): ")
    jobs = lines[1:-3]
    assert [line.partition("] ")[0] for line in jobs] == [f"[{n} of 11" for n in range(1, 12)]
    assert "Exporting squeezenet1_1 to ONNX" in {line.partition("] ")[2] for line in jobs}
    (log,) = (workflow.root / ".snakemake/log").iterdir()
    assert "Select jobs to execute" in log.read_text()


def test_a_second_run_says_that_all_cells_are_measured(empty, tmp_path):
    workflow = empty.copy(tmp_path / "workflow")
    workflow.run("--cores", "1", "measurements")
    _, output, _ = errors_of(workflow, "results/default/report.html")
    assert output.startswith("Study 'default': all 5 cells are measured.\n")


def test_a_run_without_measurements_says_how_many_cells_are_measured(empty, tmp_path):
    workflow = empty.copy(tmp_path / "workflow")
    _, output, _ = errors_of(workflow, "results/default/models/squeezenet1_1/check.json")
    assert output == "Study 'default': 0 of 5 cells are measured; this run measures none.\n\n"


def test_errors_and_a_dry_run_are_as_snakemake_prints_them(empty, tmp_path):
    workflow = empty.copy(tmp_path / "workflow")
    workflow.fake("export", "raise ValueError('broken')\n")
    _, planned, _ = workflow.plan("measurements")
    code, _, errors = errors_of(workflow, "measurements")
    assert code == 1 and "Job stats:" in planned
    for part in (
        "Error in rule export:\n    message: ",
        "    log: logs/default/export/",
        "Exiting because a job execution failed. Look above for error messages\n",
        "A job failed; its log is under logs/default/.\n",
        "Run the same command again: Perseus keeps all finished measurements.\n",
    ):
        assert part in errors
