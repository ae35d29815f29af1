"""Tests of the cluster profiles: in each profile, every measurement has a node of its own."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROFILES = ["cluster-generic", "kubernetes", "slurm"]
ALONE = {
    "slurm": ("slurm_extra", "--exclusive"),
    "cluster-generic": ("node", "--exclusive"),
    "kubernetes": ("node", "--alone"),
}


def profile(name):
    return yaml.safe_load((ROOT / "profiles" / name / "config.yaml").read_text())


def rules():
    """Return the text of each rule by its name."""
    texts = [path.read_text() for path in sorted((ROOT / "rules").glob("*.smk"))]
    parts = [part for text in texts for part in re.split(r"^rule ", text, flags=re.MULTILINE)[1:]]
    return {part.split(":", 1)[0]: part for part in parts}


def measuring():
    """Return the rules that need a whole machine or a remote server."""
    return {name for name, text in rules().items() if re.search(r"local_server=1|\*\*SLOTS", text)}


def pins(path):
    lines = (line.strip() for line in path.read_text().splitlines())
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pairs}


def test_there_are_rules_that_measure():
    assert measuring() >= {"ceiling", "measure"}


@pytest.mark.parametrize("name", PROFILES)
def test_whatever_measures_has_the_cores_of_a_node_and_no_slot_on_this_machine(name):
    found = profile(name)
    assert set(found["set-threads"]) == measuring()
    assert set(found["set-resources"]) == measuring()
    for resources in found["set-resources"].values():
        assert resources["local_server"] == 0
        key, option = ALONE[name]
        assert option in resources[key]
    assert not measuring() & set(found.get("groups", {}))


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_takes_no_time_from_a_cell_that_asks_for_more(name):
    assert "runtime" not in profile(name)["set-resources"]["measure"]


@pytest.mark.parametrize("name", PROFILES)
def test_only_rules_that_exist_are_named(name):
    found = profile(name)
    assert set(found.get("groups", {})) <= set(rules())
    assert set(found.get("group-components", {})) <= set(found.get("groups", {}).values())


@pytest.mark.parametrize("name", ["cluster-generic", "slurm"])
def test_an_executor_changes_no_pin(name):
    ours = pins(ROOT / "requirements.txt")
    theirs = pins(ROOT / "profiles" / name / "requirements.txt")
    assert f"snakemake-executor-plugin-{name}" in theirs
    assert not {package for package in ours.keys() & theirs if ours[package] != theirs[package]}


@pytest.mark.parametrize(
    ("slurm_says", "code", "heard"),
    [
        ("PENDING", 0, "running"),
        ("COMPLETING", 0, "running"),
        ("COMPLETED", 0, "success"),
        ("CANCELLED", 0, "failed"),
        ("TIMEOUT", 0, "failed"),
        ("OUT_OF_MEMORY", 0, "failed"),
        ("slurm_load_jobs error: Invalid job id specified", 1, "failed"),
        (
            "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
            1,
            "running",
        ),
    ],
)
def test_a_job_without_an_answer_is_neither_lost_nor_waited_for(tmp_path, slurm_says, code, heard):
    squeue = tmp_path / "squeue"
    squeue.write_text(f"#!/bin/sh\necho '{slurm_says}'\nexit {code}\n")
    squeue.chmod(0o755)
    status = ROOT / "profiles" / "cluster-generic" / "status.sh"
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run([status, "7"], env={"PATH": path}, stdout=subprocess.PIPE, text=True)
    assert done.stdout.split() == [heard]


ENDS_PROPERLY = """
import pathlib, signal, sys, time
def end(*_):
    time.sleep(0.3)
    pathlib.Path(sys.argv[1]).write_text("the server has ended")
    sys.exit()
signal.signal(signal.SIGTERM, end)
print("measuring", flush=True)
time.sleep(60)
"""


def test_a_pod_that_is_deleted_waits_until_its_measurement_has_ended(tmp_path):
    """The shell between the pod and the measurement ends at once."""
    measurement, script, ended = (tmp_path / name for name in ("cell.py", "job.sh", "ended"))
    measurement.write_text(ENDS_PROPERLY)
    script.write_text(f"{sys.executable} {measurement} {ended}\ntrue\n")
    pod = [sys.executable, str(ROOT / "profiles/kubernetes/pod.py"), str(script)]
    with subprocess.Popen(
        pod, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout.readline() == "measuring\n"
        process.terminate()
        assert process.wait(30) == 128 + signal.SIGTERM
    assert ended.read_text() == "the server has ended"


def test_a_pod_ends_with_the_exit_code_of_its_script(tmp_path):
    (tmp_path / "job.sh").write_text("sleep 60 & exit 3")
    pod = [sys.executable, str(ROOT / "profiles/kubernetes/pod.py"), str(tmp_path / "job.sh")]
    with subprocess.Popen(pod, start_new_session=True) as process:
        assert process.wait(10) == 3
        os.killpg(process.pid, signal.SIGKILL)
