"""Tests that launchers are found by name, and that a new launcher needs no change elsewhere."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

import fake_nvml
import pytest
from fake_nvml import FakeNvml

from perseus.host import cores
from perseus.host.cores import TooFewCoresError
from perseus.host.exclusive import exclusive_if_free
from perseus.host.topology import Topology
from perseus.serving import launchers
from perseus.serving.launch import cores_of, launch
from perseus.study.launchers import LAUNCHERS
from perseus.study.remote import Remote
from perseus.study.tasks.measure import MeasuredServer

SERVER = MeasuredServer(
    name="cpu1",
    device="cpu",
    launcher="embedded",
    image=None,
    runtime="onnxruntime",
    cores=1,
    gpus=(),
    remote=None,
)


@pytest.mark.parametrize("name", LAUNCHERS)
def test_each_launcher_of_the_registry_has_its_module(name):
    assert callable(import_module(f"{launchers.__name__}.{name}").serve)


def test_a_new_launcher_is_a_module_of_its_name(tmp_path, monkeypatch):
    (tmp_path / "nerdctl.py").write_text(
        "def serve(server, repository, log_path, cores, *, say, rate_limited_cores):\n"
        "    say(f'{server.name} {repository} {log_path} {cores} {rate_limited_cores}')\n"
    )
    monkeypatch.setattr(launchers, "__path__", [*launchers.__path__, str(tmp_path)])
    messages: list[str] = []
    server = SERVER.model_copy(update={"launcher": "nerdctl"})
    launch(server, Path("models"), Path("log"), [3], say=messages.append, rate_limited_cores=1)
    assert messages == ["cpu1 models log [3] 1"]


@pytest.fixture(autouse=True)
def no_siblings(monkeypatch):
    monkeypatch.setattr(cores, "read_topology", Topology)


def measured_by(server, tmp_path):
    return cores_of(server, "study/cell", lambda line: None, tmp_path)


def test_a_server_here_and_its_client_share_no_core(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    with measured_by(SERVER, tmp_path) as split:
        assert split == ([3], [0, 1, 2])
    too_many = SERVER.model_copy(update={"cores": 4})
    with pytest.raises(TooFewCoresError), measured_by(too_many, tmp_path):
        pytest.fail("no core is left for the client")


def test_a_measurement_has_all_its_cores_and_gpus_for_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    nvml = fake_nvml.install(monkeypatch, FakeNvml())
    with measured_by(SERVER.model_copy(update={"gpus": (1,)}), tmp_path):
        for name in ("core-0", "core-1", "gpu-GPU-1"):
            with exclusive_if_free(f"perseus-{name}", "another", tmp_path) as free:
                assert not free, name
    assert nvml.opened == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        "perseus-core-0.lock",
        "perseus-core-1.lock",
        "perseus-gpu-GPU-1.lock",
    }


def test_a_server_elsewhere_leaves_the_client_as_many_as_it_is_given(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {4, 5, 6})
    far = Remote(host="127.0.0.1", client_cores=2)
    elsewhere = SERVER.model_copy(update={"remote": far})
    with measured_by(elsewhere, tmp_path) as split:
        assert split == ([], [4, 5])
    with exclusive_if_free("perseus-core-4", "another", tmp_path) as free:
        assert free
        with measured_by(elsewhere, tmp_path) as split:
            assert split == ([], [5, 6])
            with exclusive_if_free("perseus-remote_localhost", "a third", tmp_path) as free:
                assert not free
