"""No job runs beside a measurement, whatever cores and resources the user gives Snakemake."""

from itertools import combinations

import pytest
from conftest import STUDY
from workflow_copy import OUTPUT_FILES

SLEEP = (
    OUTPUT_FILES
    + """
import time

start = time.monotonic_ns()
# One export takes so long that the other model could be measured meanwhile.
time.sleep(2 if "mobilenet_v3_large" in snakemake.wildcards.get("model", "") else 0.15)
for path in output_files:
    path.write_text('{"outcome": "ok", "reason": "", "path": "%s"}' % path)
spans = Path("spans")
spans.mkdir(exist_ok=True)
name = "-".join([snakemake.rule, *snakemake.wildcards])
(spans / name).write_text(f"{start} {time.monotonic_ns()}")
"""
)


@pytest.fixture
def overlaps(empty, tmp_path):
    """Return a function that runs all measurements and returns the pairs of jobs that overlap."""
    workflow = empty.copy(tmp_path / "workflow")
    study = STUDY.replace("[[3, 1]]", "[[3, 1], [1, 1]]").replace("weights/resnet18.pt", "random")
    study = study.replace("images: photos, ", "")
    (workflow.root / "config" / "config.yaml").write_text(study)
    for step in ("export", "repository", "measure"):
        workflow.fake(step, SLEEP)

    def run(*arguments):
        workflow.run("measurements", *arguments)
        files = sorted((workflow.root / "spans").iterdir())
        assert [file.name.split("-")[0] for file in files].count("measure") == 4
        spans = [(file.name, *map(int, file.read_text().split())) for file in files]
        return [
            {one, other}
            for (one, start, end), (other, begin, finish) in combinations(spans, 2)
            if start < finish and begin < end
        ]

    return run


def measured(pairs):
    """For each pair of jobs, return how many of the two jobs are measurements."""
    return [sum(name.startswith("measure") for name in pair) for pair in pairs]


def test_nothing_runs_beside_a_measurement(overlaps):
    """A measurement uses so many threads that no other job runs beside it.

    With 8 cores and two local servers, only the threads prevent an overlap. Fewer cores or servers
    cannot allow an overlap either.
    """
    pairs = overlaps("--cores", "8", "--resources", "mem_mb=100000", "local_server=2")
    assert pairs, "exports run side by side, or this test could not see an overlap"
    assert not any(measured(pairs)), pairs


def test_fewer_threads_still_leave_one_server_at_a_time(overlaps):
    assert 2 not in measured(overlaps("--cores", "4", "--set-threads", "measure=1"))


def test_whoever_lifts_both_limits_gets_measurements_side_by_side(overlaps):
    """The options of the user replace the limits of the workflow. The test also shows that the
    tests above can detect an overlap."""
    lifted = ["--set-threads", "measure=1", "--resources", "local_server=9"]
    assert 2 in measured(overlaps("--cores", "4", *lifted))
