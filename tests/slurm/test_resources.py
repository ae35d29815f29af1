"""What the profiles ask of Slurm for a measurement, seen from inside the job; nothing is served."""

import json

import pytest
from conftest import CPUS, said, start
from dag.workflow_copy import Workflow

SEEN = """
import json
import os
from pathlib import Path

seen = {"cpus": len(os.sched_getaffinity(0)), "gpus": os.environ.get("CUDA_VISIBLE_DEVICES")}
for path in snakemake.output:
    Path(path).write_text(json.dumps(seen))
"""
CEILING = "results/smoke/ceilings/cpu1.json"
EXCLUSIVE = "'--exclusive'"
# What to replace in a profile, and by what, for a job that needs a GPU.
GPU = {
    "slurm": (EXCLUSIVE, EXCLUSIVE + "\"\n    gres: \"'gpu:1'"),
    "cluster-generic": (EXCLUSIVE, "'--exclusive --gres=gpu:1'"),
}


@pytest.mark.parametrize("profile", GPU)
def test_a_job_has_the_whole_node_and_the_gpu_that_the_profile_asks_for(slurm, tmp_path, profile):
    workflow = Workflow.copied_to(tmp_path)
    workflow.fake("ceiling", SEEN)
    path = workflow.root / "profiles" / profile / "config.yaml"
    path.write_text(path.read_text().replace(*GPU[profile]))
    assert start(workflow.root, profile, CEILING).wait(90) == 0, said(workflow.root)
    seen = json.loads((workflow.root / CEILING).read_text())
    assert seen == {"cpus": CPUS, "gpus": "0"}
