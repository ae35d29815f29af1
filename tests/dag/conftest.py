"""A copy of the workflow with all results of a study, and a copy without results. Short scripts
replace the measurements and exports, so the study takes seconds."""

from collections.abc import Callable
from pathlib import Path

import pytest
from weights_files import write_shapes
from workflow_copy import Job, Workflow

STUDY = """\
study: edits
seed: 1
models:
  - {name: resnet18, weights: weights/resnet18.pt, sla: {percentile: 95, latency_ms: 100}}
  - {name: mobilenet_v3_large, images: photos, sla: {percentile: 95, latency_ms: 50}}
servers:
  - {name: cpu1, cores: 1, price: {instance: n1-standard-1, region: us-central1}}
scenarios:
  - name: shared
    servers: [cpu1]
    tenants: [{model: resnet18}, {model: mobilenet_v3_large}]
    experiments: [{kind: peak, mixes: [[3, 1]]}]
measurement: {precision: quick}
figures: {width_mm: 160}
"""


@pytest.fixture(scope="session")
def finished(made_once: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Workflow:
    """Return a read-only workflow with all results of STUDY. Tests edit a copy."""
    made = Workflow(made_once("finished", finish))
    return made.copy(tmp_path_factory.mktemp("finished") / "workflow")


def finish(root: Path) -> None:
    """Make all results of STUDY in an empty folder."""
    workflow = Workflow.copied_to(root)
    (root / "config" / "config.yaml").write_text(STUDY)
    (root / "weights").mkdir()
    write_shapes(root / "weights" / "resnet18.pt", "resnet18")
    (root / "photos").mkdir()
    for number in range(1, 9):
        (root / "photos" / f"{number}.jpg").write_bytes(b"photo %d" % number)
    large = b"photo 1" * 200_000  # Snakemake compares no checksums of such large files by default
    (root / "photos" / "1.jpg").write_bytes(large)
    workflow.run("--cores", "2", "all")


@pytest.fixture(scope="session")
def figures(finished: Workflow) -> set[Job]:
    """Return the jobs that draw the figures of STUDY, and the job of the report."""
    return {job for job in finished.jobs() if job[0] == "figure"} | {("report",)}


@pytest.fixture(scope="session")
def priced_jobs(figures: set[Job]) -> set[Job]:
    """Return all jobs that depend on prices."""
    return {("tables",), ("check_tables",), *figures}


@pytest.fixture(scope="session")
def downstream(priced_jobs: set[Job]) -> set[Job]:
    """Return all jobs after the measurements of peaks."""
    return {("predictions",), *priced_jobs}


@pytest.fixture
def edited(finished: Workflow, tmp_path: Path) -> Workflow:
    """Return a copy of the workflow with all results of STUDY, which the test may edit."""
    return finished.copy(tmp_path / "workflow")


@pytest.fixture(scope="session")
def empty(made_once: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Workflow:
    """Return a read-only workflow with the default configuration and no results."""
    made = Workflow(made_once("empty", Workflow.copied_to))
    return made.copy(tmp_path_factory.mktemp("empty") / "workflow")
