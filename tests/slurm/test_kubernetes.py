"""The Kubernetes profile with a fake kubectl, which runs each job on this machine without a pod."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from dag.workflow_copy import Workflow

SMOKE = ["--configfile", "config/studies/smoke.yaml"]
MEASURED = [
    "results/smoke/ceilings/cpu1.json",
    "results/smoke/raw/cpu1.squeezenet1_1.peak.r1",
]
KUBECTL = """\
#!/bin/sh
# Keeps each job as NAME.json; NAME.code is the exit code of what it ran.
case $1 in
  create)
    name=perseus-$(ls *.json 2>/dev/null | wc -l)
    cat > $name.json
    python3 ./pod.py $name >/dev/null 2>&1 &
    echo $name ;;
  get)
    [ -e $3.json ] || { echo 'Error from server (NotFound)' >&2; exit 1; }
    case $(cat $3.code 2>/dev/null) in
      '') ;;
      0) echo 'SuccessCriteriaMet Complete' ;;
      *) echo 'FailureTarget Failed' ;;
    esac ;;
  delete) echo "$@" >> deleted ;;
  *) exit 2 ;;
esac
"""
POD = """\
import json, pathlib, subprocess, sys
name = sys.argv[1]
(pod,) = json.load(open(name + ".json"))["spec"]["template"]["spec"]["containers"]
done = subprocess.run(pod["command"], cwd=pod["workingDir"])
pathlib.Path(name + ".part").write_text(str(done.returncode))
pathlib.Path(name + ".part").rename(name + ".code")
"""


@pytest.fixture
def pods(tmp_path) -> Path:
    """Return the folder of the fake kubectl and of the jobs that it receives."""
    (tmp_path / "kubectl").write_text(
        KUBECTL.replace("case $1 in", f"cd {tmp_path}\ncase $1 in", 1)
    )
    (tmp_path / "kubectl").chmod(0o755)
    (tmp_path / "pod.py").write_text(POD)
    return tmp_path


@pytest.fixture
def workflow(tmp_path_factory) -> Workflow:
    return Workflow.copied_to(tmp_path_factory.mktemp("workflow"))


def snakemake(workflow: Workflow, pods: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snakemake", "--profile", "profiles/kubernetes", *arguments]
    return subprocess.run(
        [*command, *SMOKE, "--seconds-between-status-checks", "1", "--latency-wait", "5"],
        cwd=workflow.root,
        env=os.environ | {"PATH": f"{pods}:{os.environ['PATH']}"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
    )


def test_a_measurement_fills_its_pod_and_keeps_other_pods_from_its_node(workflow, pods):
    done = snakemake(workflow, pods, *MEASURED)
    assert done.returncode == 0, done.stdout
    jobs = [json.loads(path.read_text()) for path in pods.glob("*.json")]
    assert len(jobs) == 5, "two exports, the repositories, a cell, the ceiling"
    alone = [job for job in jobs if "affinity" in job["spec"]["template"]["spec"]]
    assert len(alone) == 2
    for job in alone:
        pod = job["spec"]["template"]["spec"]
        (term,) = pod["affinity"]["podAntiAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]
        # the limit does not count the time in which the pod waits for a node
        assert pod["activeDeadlineSeconds"] >= 3600
        assert "activeDeadlineSeconds" not in job["spec"]
        labels = job["spec"]["template"]["metadata"]["labels"]
        assert term["labelSelector"]["matchLabels"].items() <= labels.items()
        (container,) = pod["containers"]
        amounts = {"cpu": "15", "memory": "4000M"}
        assert container["resources"] == {"requests": amounts, "limits": amounts}
        assert {mount["name"] for mount in container["volumeMounts"]} == {
            volume["name"] for volume in pod["volumes"]
        }


def test_a_pod_that_fails_fails_its_job(workflow, pods):
    workflow.fake("export", "raise SystemExit('no such model')\n")
    done = snakemake(workflow, pods, *MEASURED)
    assert done.returncode == 1 and "Traceback" not in done.stdout, done.stdout


def test_a_pod_that_is_deleted_by_hand_fails_its_job(workflow, pods):
    """If the API does not answer, the job counts as running."""
    (pods / "kubectl").write_text("#!/bin/sh\necho 'Unable to connect to the server' >&2\nexit 1\n")
    assert status(pods) == "running"
    (pods / "kubectl").write_text("#!/bin/sh\necho 'Error from server (NotFound): x' >&2\nexit 1\n")
    assert status(pods) == "failed"


def status(pods: Path) -> str:
    return subprocess.run(
        [Path(__file__).parents[2] / "profiles" / "kubernetes" / "status.sh", "perseus-x"],
        env={"PATH": f"{pods}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        text=True,
        timeout=10,
    ).stdout.strip()
