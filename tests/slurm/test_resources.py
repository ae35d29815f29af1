"""Tests of the CPUs and GPUs that a job of profiles/slurm gets."""

import json

from conftest import ALONE, CPUS, RAW, configure, log_text, start
from dag.workflow_copy import OUTPUT_FILES, Workflow

SEEN = (
    OUTPUT_FILES
    + """
import json
import os

seen = {"cpus": len(os.sched_getaffinity(0)), "gpus": os.environ.get("CUDA_VISIBLE_DEVICES")}
seen |= {"outcome": "ok", "reason": ""}
for path in output_files:
    path.write_text(json.dumps(seen))
"""
)


def test_a_job_has_the_whole_node_and_the_gpus_that_the_profile_asks_for(slurm, tmp_path):
    """An exclusive job owns all GPUs of its node. The measurement sees only the requested GPUs."""
    workflow = Workflow.copied_to(tmp_path)
    configure(workflow.root, ALONE)
    workflow.fake("measure", SEEN)
    profile = workflow.root / "profiles" / "slurm" / "config.yaml"
    profile.write_text(profile.read_text().replace("# gres: ", "gres: "))
    assert start(workflow.root, "slurm", RAW).wait(120) == 0, log_text(workflow.root)
    seen = json.loads((workflow.root / RAW / "record.json").read_text())
    assert (seen["cpus"], seen["gpus"]) == (CPUS, "0")
