"""What profiles/slurm asks of Slurm for a measurement, seen from inside the job."""

import json

from conftest import ALONE, CPUS, RECORD, configure, said, start
from dag.workflow_copy import Workflow

SEEN = """
import json
import os
from pathlib import Path

seen = {"cpus": len(os.sched_getaffinity(0)), "gpus": os.environ.get("CUDA_VISIBLE_DEVICES")}
seen |= {"outcome": "ok", "reason": ""}
for path in snakemake.output:
    Path(path).write_text(json.dumps(seen))
"""


def test_a_job_has_the_whole_node_and_the_gpus_that_the_profile_asks_for(slurm, tmp_path):
    """An exclusive job owns all GPUs of its node; the step that measures sees those asked for."""
    workflow = Workflow.copied_to(tmp_path)
    configure(workflow.root, ALONE)
    workflow.fake("measure", SEEN)
    profile = workflow.root / "profiles" / "slurm" / "config.yaml"
    profile.write_text(profile.read_text().replace("# gres: ", "gres: "))
    assert start(workflow.root, "slurm", RECORD).wait(120) == 0, said(workflow.root)
    seen = json.loads((workflow.root / RECORD).read_text())
    assert (seen["cpus"], seen["gpus"]) == (CPUS, "0")
