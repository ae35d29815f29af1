"""A launcher is found by its name, and a new one needs no change elsewhere."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

import pytest

from perseus.host.cores import TooFewCoresError
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
    said: list[str] = []
    server = SERVER.model_copy(update={"launcher": "nerdctl"})
    launch(server, Path("models"), Path("log"), [3], say=said.append, rate_limited_cores=1)
    assert said == ["cpu1 models log [3] 1"]


def test_a_server_here_and_its_client_share_no_core(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    with cores_of(SERVER) as split:
        assert split == ([3], [0, 1, 2])
    with pytest.raises(TooFewCoresError), cores_of(SERVER.model_copy(update={"cores": 4})):
        pytest.fail("no core is left for the client")


def test_a_server_elsewhere_leaves_the_client_as_many_as_it_is_given(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {4, 5, 6})
    far = Remote(host="127.0.0.1", client_cores=2)
    with cores_of(SERVER.model_copy(update={"remote": far})) as split:
        assert split == ([], [4, 5])
