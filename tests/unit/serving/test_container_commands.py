"""Tests of the arguments of container engines, one by one. No argument goes through a shell."""

from __future__ import annotations

import csv
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from perseus.host.orphans import names_of_dead_owners, unique_name
from perseus.serving import container_commands
from perseus.serving.container_commands import Container, Contents, run
from perseus.serving.containers import contents
from perseus.serving.failures import ServerError
from perseus.serving.launchers import docker, podman
from perseus.serving.launchers.apptainer import apptainer_environment, apptainer_exec
from perseus.serving.triton_command import Ports, arguments
from perseus.study.tasks.measure import MeasuredServer

IMAGE = "nvcr.io/nvidia/tritonserver:24.10-py3"
CPU = Container(
    name="perseus-triton-1",
    inside=Contents(IMAGE),
    repository=Path("/study/a repository"),
    cores=[2, 3],
    arguments=["--id=perseus-triton-1"],
)


def with_inside(**changes):
    return replace(CPU, inside=replace(CPU.inside, **changes))


@pytest.fixture(autouse=True)
def user(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setattr(os, "getgid", lambda: 1001)


def test_docker_run():
    assert run(docker.ENGINE, "/usr/bin/docker", CPU) == [
        "/usr/bin/docker",
        "run",
        "--rm",
        "--pull=never",
        "--name=perseus-triton-1",
        "--network=host",
        "--cpuset-cpus=2,3",
        "--shm-size=4g",
        "--stop-timeout=30",
        "--user=1000:1001",
        "--cap-drop=all",
        "--security-opt=no-new-privileges",
        "--security-opt=label=disable",
        "--mount=type=bind,source=/study/a repository,target=/models,readonly",
        IMAGE,
        "tritonserver",
        "--id=perseus-triton-1",
    ]


def test_podman_run_keeps_the_ids_of_a_user_and_has_none_to_keep_of_root(monkeypatch):
    plain = run(docker.ENGINE, "/usr/bin/docker", CPU)
    kept = run(podman.ENGINE, "/usr/bin/podman", CPU)
    assert kept[0] == "/usr/bin/podman"
    assert [each for each in kept if each not in plain[1:]][1:] == ["--userns=keep-id"]
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert "--userns=keep-id" not in run(podman.ENGINE, "/usr/bin/podman", CPU)


def test_apptainer_exec():
    assert apptainer_exec("/usr/bin/apptainer", with_inside(image="/images/triton.sif")) == [
        "/usr/bin/apptainer",
        "exec",
        "--cleanenv",
        "--no-home",
        "--mount=type=bind,source=/study/a repository,target=/models,readonly",
        "/images/triton.sif",
        "tritonserver",
        "--id=perseus-triton-1",
    ]


def test_gpus_are_named_as_each_engine_wants_them():
    gpu = with_inside(gpus=[0, 2])
    asked = run(docker.ENGINE, "docker", gpu)
    (devices,) = [each for each in asked if each.startswith("--gpus=")]
    # docker reads the value as a line of CSV, so the device must be one field
    assert next(csv.reader([devices.removeprefix("--gpus=")])) == ["device=0,2"]
    assert [each for each in run(podman.ENGINE, "podman", gpu) if "nvidia.com" in each] == [
        "--device=nvidia.com/gpu=0",
        "--device=nvidia.com/gpu=2",
    ]
    assert "--nv" in apptainer_exec("apptainer", gpu)
    environment = apptainer_environment({"HOME": "/home/a"}, gpu.inside.gpus)
    assert environment == {
        "HOME": "/home/a",
        # all GPUs are in the container, and CUDA would number the fastest one 0
        "APPTAINERENV_CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "APPTAINERENV_CUDA_VISIBLE_DEVICES": "0,2",
    }
    for command in (
        run(docker.ENGINE, "docker", CPU),
        run(podman.ENGINE, "podman", CPU),
        apptainer_exec("apptainer", CPU),
    ):
        assert not [each for each in command if "gpu" in each or each == "--nv"]
    assert apptainer_environment({}, []) == {}


def server(**changes):
    plain = {
        "name": "cpu1",
        "device": "cpu",
        "launcher": "docker",
        "image": IMAGE,
        "runtime": "onnxruntime",
        "cores": 2,
        "gpus": (),
        "remote": None,
    }
    return MeasuredServer.model_validate(plain | changes)


@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino", "tensorrt"])
def test_the_image_has_its_own_backend_of_these_runtimes(runtime):
    native = replace(CPU, inside=contents(server(runtime=runtime)))
    assert not [each for each in run(docker.ENGINE, "docker", native) if "back" in each]


def test_the_backend_of_any_other_runtime_is_ours():
    inside = contents(server(runtime="pytorch"))
    assert inside.backend is not None and (inside.backend / "model.py").is_file()
    mount = "--mount=type=bind,source=/scripts/backends/pytorch,"
    mount += "target=/opt/tritonserver/backends/pytorch,readonly"
    pytorch = with_inside(backend=Path("/scripts/backends/pytorch"))
    assert mount in run(docker.ENGINE, "docker", pytorch)
    assert mount in apptainer_exec("apptainer", pytorch)


def test_a_container_without_an_image_is_refused():
    with pytest.raises(ServerError, match="cpu1: the launcher 'docker' needs an image"):
        contents(server(image=None))


@pytest.mark.parametrize("folder", ["/a,readonly=false", '/a"b', "/a\nb"])
def test_a_folder_that_would_change_the_mount_is_refused(folder):
    for command in (partial(run, docker.ENGINE), apptainer_exec):
        with pytest.raises(ServerError, match="cannot be mounted into a container"):
            command("docker", replace(CPU, repository=Path(folder)))


def test_an_engine_kills_after_triton_has_given_up():
    drain_s = next(
        int(each.partition("=")[2])
        for each in arguments("name", Path("/models"), Ports(1, 2, 3), 16, 0)
        if each.startswith("--exit-timeout-secs=")
    )
    assert drain_s < container_commands.STOP_S


def test_only_the_containers_of_dead_owners_are_swept():
    mine = unique_name()
    tag, pid, ticks, word = mine.removeprefix("perseus-triton-").split("-")
    dead = f"perseus-triton-{tag}-{pid}-{int(ticks) - 1}-{word}"  # an earlier process with this id
    elsewhere = dead.replace(tag, "0" * 8)
    assert names_of_dead_owners([mine, dead, elsewhere, "theirs", f"{dead}-input"]) == [dead]
