"""A GPU study on a machine without GPUs.

Every machine can plan the study. A run that would measure on this machine stops before its first
job.
"""

import os
import subprocess
import sys

import pytest
import yaml

IMAGE = "nvcr.io/nvidia/tritonserver:24.10-py3"
STUDY = """\
study: gpu
models:
  - {{name: resnet18, precision: {precision}, sla: {{latency_ms: 50}}}}
servers:
  - {{name: gpu1, device: gpu, gpus: [0, 1], runtime: {runtime}, {launcher} cores: 1,
      price: {{instance: n1-standard-1, region: us-central1, accelerator: 'T4:2'}}}}
scenarios:
  - {{name: resnet18, servers: [gpu1], tenants: [{{model: resnet18}}]}}
"""
CONTAINER = f"launcher: docker, image: '{IMAGE}',"


@pytest.fixture
def study(empty, tmp_path):
    """Return a function that writes a GPU study and returns the options that select it."""

    def write(runtime="pytorch", precision="fp32", launcher=""):
        path = tmp_path / "study.yaml"
        text = STUDY.format(runtime=runtime, precision=precision, launcher=launcher)
        path.write_text(text)
        return ["--configfile", str(path)]

    return write


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({}, {"export", "export_program", "repository"}),
        ({"precision": "fp16"}, {"export", "export_program", "repository"}),
        ({"runtime": "onnxruntime"}, {"export", "repository"}),
        (
            {"runtime": "onnxruntime", "precision": "fp16"},
            {"export", "convert", "repository"},
        ),
        (
            {"runtime": "tensorrt", "launcher": CONTAINER},
            {"export", "tensorrt", "repository"},
        ),
        (
            {"runtime": "tensorrt", "precision": "fp16", "launcher": CONTAINER},
            {"export", "convert", "tensorrt", "repository"},
        ),
    ],
)
def test_each_runtime_of_a_gpu_has_its_steps(empty, study, options, steps):
    jobs = {job[0] for job in empty.jobs(*study(**options))}
    tables = {"predictions", "tables", "check_tables"}
    always = {"measure", "ceiling", *tables, "figure", "report"}
    assert jobs - always == steps


@pytest.mark.parametrize("name", ["slurm", "kubernetes", "cluster-generic"])
@pytest.mark.parametrize(
    "options",
    [
        {"runtime": "onnxruntime", "precision": "fp16"},
        {"runtime": "tensorrt", "precision": "fp16", "launcher": CONTAINER},
    ],
    ids=lambda options: options["runtime"],
)
def test_jobs_that_a_profile_joins_wait_for_none_that_waits_for_them(empty, study, name, options):
    """Snakemake cannot run an export and its repository in one group job, because a conversion
    outside the group lies between them."""
    profile = yaml.safe_load((empty.root / "profiles" / name / "config.yaml").read_text())
    joined = []
    for key in ("groups", "group-components"):
        joined += [f"--{key}", *(f"{name}={value}" for name, value in profile[key].items())]
    assert empty.jobs(*study(**options), *joined)


def test_a_run_without_the_gpus_stops_before_any_job_with_one_sentence(empty, study, tmp_path):
    workflow = empty.copy(tmp_path / "workflow")
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "all", *study()]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}  # hide the GPUs of this machine
    done = subprocess.run(
        command, cwd=workflow.root, env=environment, capture_output=True, text=True, timeout=120
    )
    text = done.stdout + done.stderr
    assert done.returncode != 0
    assert text.count("the study measures on GPUs 0, 1, ") == 1
    assert "Traceback" not in text
    assert not (workflow.root / "results").exists()


def test_a_run_that_measures_nothing_needs_no_gpu(empty, study, tmp_path):
    """Every machine can make the tables and figures of a GPU study again."""
    workflow = empty.copy(tmp_path / "workflow")
    # Without hooks, the workflow does not look for GPUs, and measures as on a machine with GPUs.
    workflow.run("--cores", "2", "--no-hooks", "measurements", *study())
    workflow.run("--cores", "2", "all", *study())
