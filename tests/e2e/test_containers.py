"""The launchers of containers, from start to end, with a stand-in for the engine (fake_engine).

Instead of a container, the stand-in runs the server of the wheel with the same arguments.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest
import tritonclient.grpc as triton_grpc
from fake_engine import image_id, install
from test_server import (
    BACKEND,
    NOTHING,
    infer,
    left_behind,
    signal_like,
    wait_until,
    write_repository,
)

from perseus.host.orphans import unique_name
from perseus.serving import container_engine, triton_process
from perseus.serving.container_commands import Contents
from perseus.serving.containers import engine_triton
from perseus.serving.failures import ServerError
from perseus.serving.launch import launch
from perseus.serving.launchers import apptainer, docker, podman
from perseus.serving.triton_command import BACKENDS, Ports
from perseus.study.tasks.measure import MeasuredServer

SCRIPTS = Path(container_engine.__file__).parents[2]
IMAGE = "nvcr.io/nvidia/tritonserver:24.10-py3"
START = {
    "docker": partial(engine_triton, docker.ENGINE),
    "podman": partial(engine_triton, podman.ENGINE),
    "apptainer": apptainer.apptainer_triton,
}
ENGINES = list(START)


class Engine:
    """A stand-in on the PATH, and the commands that it received."""

    def __init__(self, program: str, folder: Path, state: Path) -> None:
        self.program, self.state = program, state
        install(folder, program)
        self.image = str(folder / "triton.sif") if program == "apptainer" else IMAGE
        if program == "apptainer":
            Path(self.image).touch()
        (state / "images").write_text(f"{IMAGE}\n")

    def calls(self, command: str) -> list[list[str]]:
        path = self.state / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [call for call in map(json.loads, lines) if call[1] == command]

    def containers(self) -> list[str]:
        path = self.state / "containers"
        return sorted(each.name for each in path.iterdir()) if path.is_dir() else []

    def serve(
        self,
        tmp_path: Path,
        repository: Path,
        cores: list[int] | None = None,
        say: Callable[[str], None] = print,
        **inside,
    ):
        """Start the server. `inside` replaces fields of the container's `Contents`."""
        own = {"image": self.image, "backend": tmp_path / "backends" / "relu"}
        contents = Contents(**(own | inside))
        cores = [_core()] if cores is None else cores
        log_path = tmp_path / "server.log"
        return START[self.program](contents, repository, log_path, cores, say=say)


def _core() -> int:
    return max(os.sched_getaffinity(0))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "backends" / "relu").mkdir(parents=True)
    (tmp_path / "backends" / "relu" / "model.py").write_text(BACKEND)
    return write_repository(tmp_path)


@pytest.fixture
def engine_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def make(program: str) -> Engine:
        folder, state = tmp_path / "bin", tmp_path / "engine"
        folder.mkdir()
        state.mkdir()
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("FAKE_ENGINE", str(state))
        return Engine(program, folder, state)

    yield make
    # Kill the servers of the stand-in, also after a failed test.
    for path in (tmp_path / "engine" / "containers").glob("*"):
        pid = int(path.read_text())
        if str(tmp_path) in _commands(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def engine(engine_of, request) -> Engine:
    return engine_of(request.param)


def _commands(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return ""


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_serves_on_the_loopback_with_its_cores_and_leaves_nothing(engine, tmp_path, repository):
    with pytest.raises(ZeroDivisionError), engine.serve(tmp_path, repository) as server:
        with triton_grpc.InferenceServerClient(server.grpc_address) as client:
            data = signal_like()
            np.testing.assert_array_equal(infer(client, data), np.maximum(data, 0))
        assert "bin/tritonserver" in _commands(server.pid)
        root = psutil.Process(server.pid)
        processes = [root, *root.children(recursive=True)]
        assert len(processes) == 2  # the server, and the Python process of its model
        assert all(each.cpu_affinity() == [_core()] for each in processes)
        listening = [
            connection.laddr
            for each in processes
            for connection in each.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        ]
        assert {address.ip.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}
        assert engine.containers() != []
        told = None if engine.program == "apptainer" else image_id(engine.image)
        assert server.image_id == told
        raise ZeroDivisionError  # a server of another test stays
    assert engine.containers() == []
    assert left_behind(os.getpid()) == NOTHING
    assert not server.alive()


def test_a_native_backend_is_the_images_own(engine_of, tmp_path, repository):
    engine = engine_of("docker")
    # The image of the stand-in has no backend but python, so this model cannot load.
    with (
        pytest.raises(ServerError, match="unable to find backend library for backend 'relu'"),
        engine.serve(tmp_path, repository, backend=None),
    ):
        pytest.fail("the server must not become ready")
    assert engine.containers() == []


@pytest.mark.parametrize(
    ("runtime", "backend"), [("onnxruntime", None), ("pytorch", BACKENDS / "pytorch")]
)
def test_a_launcher_passes_what_the_server_of_a_task_says(runtime, backend, tmp_path, monkeypatch):
    told: dict = {}
    monkeypatch.setattr(
        "perseus.serving.containers.engine_triton",
        lambda *args, **more: told.update(more, args=args),
    )
    server = MeasuredServer(
        name="t4",
        device="gpu",
        launcher="docker",
        image=IMAGE,
        runtime=runtime,
        cores=1,
        gpus=(0, 2),
        remote=None,
    )
    launch(server, tmp_path, tmp_path / "log", [3], say=print, rate_limited_cores=1)
    inside = Contents(IMAGE, backend, [0, 2])
    assert told["args"] == (docker.ENGINE, inside, tmp_path, tmp_path / "log", [3])
    assert told["rate_limited_cores"] == 1


@pytest.mark.parametrize("engine", ["docker", "apptainer"], indirect=True)
def test_finishes_an_accepted_request_before_it_ends(engine, tmp_path, repository):
    write_repository(tmp_path, execute_s=3.0)  # longer than Perseus waits for the engine's program
    answers: list[np.ndarray] = []
    with engine.serve(tmp_path, repository) as server:
        client = triton_grpc.InferenceServerClient(server.grpc_address)
        request = threading.Thread(target=lambda: answers.append(infer(client, signal_like())))
        request.start()
        time.sleep(0.3)
    request.join()
    client.close()
    assert len(answers) == 1


@pytest.mark.parametrize("engine", ["docker", "apptainer"], indirect=True)
def test_a_server_that_was_killed_in_the_body_leaves_nothing(engine, tmp_path, repository):
    with engine.serve(tmp_path, repository) as server:
        os.kill(server.pid, signal.SIGKILL)
        assert wait_until(lambda: not server.alive(), timeout_s=5)
    assert engine.containers() == []
    assert left_behind(os.getpid()) == NOTHING


def test_takes_other_ports_when_one_is_lost_in_a_race(engine_of, tmp_path, repository, monkeypatch):
    engine = engine_of("docker")
    choose = triton_process.free_ports
    chosen: list[Ports] = []
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]

        def first_choice_is_lost() -> Ports:
            chosen.append(choose() if chosen else choose()._replace(grpc=taken))
            return chosen[-1]

        monkeypatch.setattr(triton_process, "free_ports", first_choice_is_lost)
        with engine.serve(tmp_path, repository) as server:
            assert server.http_address == f"127.0.0.1:{chosen[1].http}"
    assert len(chosen) == 2
    assert engine.containers() == []


def test_another_server_on_the_port_is_not_taken_for_the_container(
    engine_of, tmp_path, repository, monkeypatch
):
    engine = engine_of("docker")
    (tmp_path / "other").mkdir()
    with engine.serve(tmp_path, repository) as other:
        port = int(other.http_address.split(":")[1])
        choose = triton_process.free_ports
        monkeypatch.setattr(
            triton_process, "free_ports", lambda: choose()._replace(http=port, metrics=port)
        )
        monkeypatch.setattr(triton_process, "early_exit", lambda *_: ServerError("it has ended"))
        with pytest.raises(ServerError, match="it has ended"), engine.serve(tmp_path, repository):
            pytest.fail("that is the other server")


def test_a_process_that_cannot_be_seen_is_none(engine_of, tmp_path, repository, monkeypatch):
    engine = engine_of("docker")
    monkeypatch.setenv("FAKE_ENGINE_FAULT", "pid")
    with engine.serve(tmp_path, repository) as server:
        assert server.pid is None
        assert server.alive()
    assert engine.containers() == []


# --- faults of an engine --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "more", "reason"),
    [
        ("daemon", {}, r"docker cannot be used here: Cannot connect(.|\n)*systemctl start docker"),
        ("pull", {"image": "localhost/none:1"}, r"cannot pull it:(.|\n)*manifest unknown"),
        ("gpus", {"gpus": [0, 1]}, r"could not select device driver(.|\n)*NVIDIA Container Toolk"),
        ("unpinned", {}, "the engine does not pin the server"),
    ],
    ids=["daemon", "image", "gpus", "cores"],
)
def test_what_is_missing_is_explained(
    engine_of, fault, more, reason, tmp_path, repository, monkeypatch
):
    engine = engine_of("docker")
    monkeypatch.setenv("FAKE_ENGINE_FAULT", fault)
    with pytest.raises(ServerError, match=reason), engine.serve(tmp_path, repository, **more):
        pytest.fail("the server must not start")
    assert engine.containers() == []
    assert left_behind(os.getpid()) == NOTHING


@pytest.mark.parametrize("program", ENGINES)
def test_an_engine_that_is_not_installed_is_explained(program, tmp_path, repository, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    inside = Contents("triton.sif")
    with (
        pytest.raises(ServerError, match=f"needs the program {program}, which is not on the PATH"),
        START[program](inside, repository, tmp_path / "log", [0], say=print),
    ):
        pytest.fail("the server must not start")


def test_a_missing_image_file_is_explained(engine_of, tmp_path, repository):
    engine = engine_of("apptainer")
    with (
        pytest.raises(ServerError, match=r"there is no image .*/none\.sif\. Make it with"),
        engine.serve(tmp_path, repository, image=str(tmp_path / "none.sif")),
    ):
        pytest.fail("the server must not start")


def test_no_cores_and_no_repository_are_explained(engine_of, tmp_path):
    engine = engine_of("docker")
    with (
        pytest.raises(ServerError, match=r"model repository .* does not exist"),
        engine.serve(tmp_path, tmp_path / "none"),
    ):
        pytest.fail("the server must not start")
    (tmp_path / "none").mkdir()
    with (
        pytest.raises(ServerError, match="no CPU core is left"),
        engine.serve(tmp_path, tmp_path / "none", cores=[]),
    ):
        pytest.fail("the server must not start")


def test_a_container_that_cannot_be_removed_is_said(engine_of, tmp_path, repository, monkeypatch):
    engine = engine_of("docker")
    monkeypatch.setenv("FAKE_ENGINE_FAULT", "stuck")
    monkeypatch.setattr(container_engine, "_REMOVE_S", 0.5)
    with (
        pytest.raises(ServerError, match=r"cannot remove the container perseus.*device busy"),
        engine.serve(tmp_path, repository),
    ):
        pass
    assert left_behind(os.getpid()) == NOTHING  # the server has ended nevertheless


def test_an_image_is_pulled_once_and_that_is_said(engine_of, tmp_path):
    engine, image, log = engine_of("podman"), "example.org/triton:1", tmp_path / "server.log"
    program = container_engine.find_engine("podman")
    heard: list[str] = []
    for _ in range(2):  # the second time, the image is there
        found = container_engine.have_image(program, image, log, heard.append)
        assert found == image_id(image)
        assert len(engine.calls("pull")) == len(heard) == 1
    assert image in heard[0] and str(log) in heard[0]


def test_apptainer_pulls_an_image_and_that_is_said(engine_of, tmp_path, repository):
    engine, image = engine_of("apptainer"), "docker://example.org/triton:1"
    heard: list[str] = []
    with engine.serve(tmp_path, repository, image=image, say=heard.append):
        assert len(heard) == 1
        assert image in heard[0]
        assert str(tmp_path / "server.log") in heard[0]


def slow_pulls(engine: Engine, tmp_path: Path, seconds: float) -> None:
    """Let each pull of an image take some seconds more."""
    program = tmp_path / "bin" / engine.program
    pulls = "sys.argv[1] == 'pull' or sys.argv[-1] == 'true'"
    wait = f"import time\nif {pulls}: time.sleep({seconds})\n"
    program.write_text(program.read_text().replace("sys.exit(", f"{wait}sys.exit("))


@pytest.mark.parametrize("engine", ["docker", "apptainer"], indirect=True)
def test_the_startup_time_contains_no_pull(engine, tmp_path, repository):
    slow_pulls(engine, tmp_path, 2)
    image = {"docker": "far/away:1", "apptainer": "docker://far/away:1"}[engine.program]
    start_s = time.monotonic()
    with engine.serve(tmp_path, repository, image=image) as server:
        assert 0 < server.startup_s < time.monotonic() - start_s - 2


def test_a_pull_that_takes_too_long_is_ended(engine_of, tmp_path, repository, monkeypatch):
    engine = engine_of("docker")
    slow_pulls(engine, tmp_path, 60)
    monkeypatch.setattr(container_engine, "PULL_S", 1.0)
    start_s = time.monotonic()
    with (
        pytest.raises(ServerError, match=r"did not get the image far/away:1 within"),
        engine.serve(tmp_path, repository, image="far/away:1"),
    ):
        pytest.fail("the server must not start")
    assert time.monotonic() - start_s < 10


# --- the end of the measuring process -------------------------------------------------------------

MEASURING = """
import sys, time
from pathlib import Path
from perseus.host.signals import terminate_as_exit
from perseus.serving.container_commands import Contents
from perseus.serving.containers import engine_triton
from perseus.serving.launchers import apptainer, docker, podman

program, image, *paths = sys.argv[1:]
repository, backend, log = map(Path, paths)
engines = {"docker": [docker.ENGINE], "podman": [podman.ENGINE], "apptainer": []}[program]
start = engine_triton if engines else apptainer.apptainer_triton
inside = Contents(image, backend)
with terminate_as_exit(), start(*engines, inside, repository, log, [0], say=print):
    print("ready", flush=True)
    time.sleep(60)
"""


def start_measuring(engine: Engine, tmp_path: Path, repository: Path) -> subprocess.Popen[str]:
    paths = [repository, tmp_path / "backends" / "relu", tmp_path / "measured.log"]
    return subprocess.Popen(
        [sys.executable, "-c", MEASURING, engine.program, engine.image, *map(str, paths)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
    )


def measure(engine: Engine, tmp_path: Path, repository: Path) -> subprocess.Popen[str]:
    process = start_measuring(engine, tmp_path, repository)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("engine", ["docker", "apptainer"], indirect=True)
def test_a_measuring_process_that_is_asked_to_end_leaves_nothing(engine, tmp_path, repository):
    process = measure(engine, tmp_path, repository)
    assert engine.containers() != []
    process.terminate()
    assert process.wait(timeout=30) == 128 + signal.SIGTERM
    process.communicate()
    assert engine.containers() == []
    assert left_behind(process.pid) == NOTHING


@pytest.mark.parametrize("engine", ["docker", "apptainer"], indirect=True)
def test_a_measuring_process_that_is_asked_to_end_while_a_model_loads_leaves_nothing(
    engine, tmp_path, repository
):
    process = start_measuring(engine, tmp_path, write_repository(tmp_path, load_s=30))
    assert wait_until(lambda: bool(left_behind(process.pid)["memory"]), timeout_s=10)
    process.terminate()
    assert process.wait(timeout=30) == 128 + signal.SIGTERM
    process.communicate()
    assert engine.containers() == []
    assert left_behind(process.pid) == NOTHING


@pytest.mark.alone  # another test that starts a server might remove the leftovers first
@pytest.mark.parametrize("engine", ["docker", "apptainer"], indirect=True)
def test_the_next_start_sweeps_what_a_killed_process_left(engine, tmp_path, repository):
    process = measure(engine, tmp_path, repository)
    # Kill the engine's program, too: a living program could pass the kernel's signal on to the
    # container.
    programs = [p for p in psutil.Process(process.pid).children() if "--id=" in _commands(p.pid)]
    assert len(programs) == 1
    process.kill()
    programs[0].kill()
    process.communicate()
    (name,) = engine.containers()
    assert left_behind(process.pid)["processes"] != []
    mine = unique_name()
    (engine.state / "containers" / mine).write_text("0")  # the owner, this process, is alive
    with engine.serve(tmp_path, repository):
        if engine.program != "apptainer":  # apptainer has no containers, only processes
            assert name not in engine.containers()
        assert left_behind(process.pid)["processes"] == []
        assert mine in engine.containers()
    assert left_behind(process.pid) == NOTHING


# --- a real podman --------------------------------------------------------------------------------


@pytest.mark.skipif(
    not os.environ.get("PERSEUS_TEST_IMAGE") or shutil.which("podman") is None,
    reason="needs podman, and the name of a tritonserver image in PERSEUS_TEST_IMAGE",
)
def test_a_real_container_serves_and_leaves_nothing(tmp_path, repository):
    core = _core()
    image = os.environ["PERSEUS_TEST_IMAGE"]
    inside = Contents(image, tmp_path / "backends" / "relu")
    log_path = tmp_path / "server.log"
    with START["podman"](inside, repository, log_path, [core], say=print) as server:
        with triton_grpc.InferenceServerClient(server.grpc_address) as client:
            data = signal_like()
            np.testing.assert_array_equal(infer(client, data), np.maximum(data, 0))
        root = psutil.Process(server.pid)
        processes = [root, *root.children(recursive=True)]
        assert all(each.cpu_affinity() == [core] for each in processes)
    names = subprocess.run(
        ["podman", "ps", "--all", "--format={{.Names}}"], capture_output=True, text=True, check=True
    )
    assert "perseus-triton-" not in names.stdout
    assert left_behind(os.getpid()) == NOTHING
