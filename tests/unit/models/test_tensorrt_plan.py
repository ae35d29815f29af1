"""Tests of TensorRT plans, with a fake trtexec that records its arguments."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import fake_nvml
import pytest
from fake_nvml import FakeNvml

from perseus.host import gpu
from perseus.host.exclusive import exclusive_if_free
from perseus.host.gpu import GpuError
from perseus.host.identity import identity, is_gone
from perseus.models.tensorrt_plan import (
    TensorRtError,
    batches,
    build,
    no_measurement_running,
    parse_version,
)
from perseus.models.tensors import ModelTensors
from perseus.study.tasks.tensorrt import TensorRtTask

SCRIPTS = Path(__file__).parents[3] / "scripts"
TRTEXEC = """\
#!{python}
import json, os, sys
with open({record!r}, "a") as file:
    call = {{"arguments": sys.argv[1:], "gpus": os.environ["CUDA_VISIBLE_DEVICES"]}}
    file.write(json.dumps(call) + "\\n")
print("&&&& RUNNING TensorRT.trtexec [TensorRT v{version}] # trtexec")
options = dict(a.removeprefix("--").partition("=")[::2] for a in sys.argv[1:])
if "saveEngine" in options:
    open(options["saveEngine"], "wb").write(b"plan of " + open(options["onnx"], "rb").read())
    open(options["timingCacheFile"], "ab").write(b"timings")
    if {status} != 0:  # with a plan that is no good
        print("[E] Error[9]: no kernel for this layer")
        sys.exit({status})
"""
TASK = TensorRtTask(
    server="t4",
    image=None,
    gpus=(1,),
    precision="fp16",
    max_batch_size=16,
    request_batch_size=1,
    dynamic_batching=True,
    preferred_batch_sizes=(),
)


@pytest.fixture
def nvml(monkeypatch) -> FakeNvml:
    return fake_nvml.install(monkeypatch, FakeNvml())


@pytest.fixture
def builder(tmp_path, monkeypatch, nvml):
    """Return a function that builds a plan with a version of trtexec and returns its arguments."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    onnx = tmp_path / "model.onnx"
    onnx.write_bytes(b"onnx")

    def run(version="101500", status=0, **changes):
        program = tmp_path / "bin" / "trtexec"
        program.parent.mkdir(exist_ok=True)
        program.write_text(
            TRTEXEC.format(
                python=sys.executable,
                record=str(tmp_path / "asked"),
                version=version,
                status=status,
            )
        )
        program.chmod(0o755)
        record = build(
            TASK.model_copy(update=changes),
            onnx,
            ModelTensors.of_classifier((3, 224, 224), 10).plain(),
            tmp_path / "plans" / "model.plan",
            tmp_path / "plans" / "timing.cache",
            tmp_path / "logs" / "trtexec.log",
        )
        asked = [json.loads(line) for line in (tmp_path / "asked").read_text().splitlines()]
        return record, asked

    return run


def test_a_plan_is_built_on_the_server_s_gpu_for_its_batches(builder, tmp_path):
    _, asked = builder()
    assert [each["gpus"] for each in asked] == ["1", "1"]
    arguments = asked[1]["arguments"]
    assert "--minShapes=input:1x3x224x224" in arguments
    assert "--optShapes=input:16x3x224x224" in arguments
    assert "--maxShapes=input:16x3x224x224" in arguments
    assert f"--timingCacheFile={tmp_path / 'plans' / 'timing.cache'}" in arguments
    assert {"--noTF32", "--skipInference"} <= set(arguments)
    # TensorRT 11 has removed these flags and refuses unknown flags.
    assert not {"--fp16", "--int8", "--best"} & {each.partition("=")[0] for each in arguments}
    assert (tmp_path / "plans" / "model.plan").read_bytes() == b"plan of onnx"


@pytest.mark.parametrize(("version", "typed"), [("100500", True), ("110000", False)])
def test_the_network_says_its_precision_to_10_when_asked_and_to_11_always(builder, version, typed):
    _, asked = builder(version)
    assert ("--stronglyTyped" in asked[1]["arguments"]) == typed


def test_the_record_says_what_built_it_and_from_what(builder):
    record, asked = builder("110000")
    assert (record["tensorrt"], record["driver"], record["precision"]) == (
        "11.0.0",
        "580.1",
        "fp16",
    )
    assert [each["uuid"] for each in record["gpus"]] == ["GPU-1"]
    assert record["onnx_sha256"] == hashlib.sha256(b"onnx").hexdigest()
    assert record["plan_sha256"] == hashlib.sha256(b"plan of onnx").hexdigest()
    assert record["batches"] == {"min": 1, "opt": 16, "max": 16}
    assert record["command"][1:] == asked[1]["arguments"]


@pytest.mark.parametrize(
    ("changes", "best"),
    [
        ({}, 16),
        ({"preferred_batch_sizes": [4, 8]}, 8),
        ({"dynamic_batching": False}, 1),
        ({"dynamic_batching": False, "request_batch_size": 4}, 4),
    ],
)
def test_a_plan_is_fastest_at_the_batch_that_requests_end_up_in(changes, best):
    sizes = batches(TASK.model_copy(update=changes))
    assert (sizes.least, sizes.best, sizes.most) == (1, best, 16)


@pytest.mark.parametrize(
    ("number", "version"),
    [(8601, (8, 6, 1)), (100500, (10, 5, 0)), (101501, (10, 15, 1)), (110002, (11, 0, 2))],
)
def test_versions_are_read_from_both_ways_of_writing_them(number, version):
    assert parse_version(number) == version


def test_a_failed_build_leaves_no_plan_and_tells_what_trtexec_said(builder, tmp_path):
    with pytest.raises(TensorRtError, match=r"exit code 3(.|\n)*no kernel for this layer"):
        builder(status=3)
    assert [path.name for path in (tmp_path / "plans").iterdir()] == ["timing.cache"]


def test_a_version_that_cannot_take_the_precision_from_the_network_is_refused(builder):
    with pytest.raises(
        TensorRtError, match=r"belongs to TensorRT 8\.6\.1, but Perseus needs TensorRT 10"
    ):
        builder("8601")


def test_a_machine_without_trtexec_is_told_where_it_comes_from(builder, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(TensorRtError, match="no trtexec on the PATH"):
        builder()


def test_gpus_that_differ_and_gpus_that_are_missing_are_refused(builder, nvml):
    with pytest.raises(GpuError, match="GPU 2, but the number of GPUs on this machine is 2 "):
        builder(gpus=[2])
    nvml.values["nvmlDeviceGetName"] = {0: "T4", 1: "V100"}
    with pytest.raises(TensorRtError, match=r"differ \(T4, V100\)"):
        builder(gpus=[0, 1])


BUILD = """
import os, sys
from pathlib import Path
from perseus.host.signals import terminate_as_exit
from perseus.models.tensorrt_plan import _run

with terminate_as_exit():
    _run([sys.argv[1]], dict(os.environ), Path(sys.argv[2]))
"""
TRTEXEC_IN_A_CONTAINER = """#!/bin/sh
trap 'touch {told}; exit 1' TERM
echo $$ > {lives}.new
mv {lives}.new {lives}
while :; do sleep 0.1; done
"""


TRTEXEC_AS_A_CHILD = """#!/bin/sh
sleep 100 &
echo $! > {lives}.new
mv {lives}.new {lives}
wait
"""


@pytest.mark.parametrize(
    ("script", "ending"),
    [
        (TRTEXEC_IN_A_CONTAINER, signal.SIGTERM),
        (TRTEXEC_IN_A_CONTAINER, signal.SIGINT),
        (TRTEXEC_IN_A_CONTAINER, signal.SIGKILL),
        (TRTEXEC_AS_A_CHILD, signal.SIGTERM),
        (TRTEXEC_AS_A_CHILD, signal.SIGINT),
    ],
)
def test_what_builds_a_plan_ends_with_its_job_however_that_ends(tmp_path, script, ending):
    """trtexec gets a SIGTERM, so that its container ends.

    Without the SIGTERM, trtexec would still use the GPU during the next measurement.
    """
    program, lives, told = (tmp_path / name for name in ("trtexec", "lives", "told"))
    program.write_text(script.format(lives=lives, told=told))
    program.chmod(0o755)
    command = [sys.executable, "-c", BUILD, str(program), str(tmp_path / "log")]
    with subprocess.Popen(
        command, env=os.environ | {"PYTHONPATH": str(SCRIPTS)}, stderr=subprocess.DEVNULL
    ) as job:
        until(lives.exists)
        builder = identity(int(lives.read_text()))
        job.send_signal(ending)
    until(lambda: is_gone(builder))
    assert told.exists() == (script == TRTEXEC_IN_A_CONTAINER)


def until(holds):
    end_s = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.02)


def test_nothing_is_measured_meanwhile_on_the_gpu_and_the_cores(nvml, tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    gpus = gpu.locks(TASK.gpus)
    assert len(gpus) == 1
    with no_measurement_running(TASK, "a plan", print, tmp_path):
        for name in ("perseus-core-0", *gpus):
            with exclusive_if_free(name, "a measurement", tmp_path) as free:
                assert not free
