"""The embedded launcher with a real tritonserver: serving, error messages and cleanup.

The model is a Relu in a python-based backend of the test, so the test needs no network.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fake_triton_metrics
import numpy as np
import psutil
import pytest
import tritonclient.grpc as triton_grpc
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from perseus.host import orphans
from perseus.serving import triton_process, triton_wheel
from perseus.serving.access import PLAIN
from perseus.serving.failures import ServerError
from perseus.serving.launchers import embedded
from perseus.serving.launchers.embedded import embedded_triton
from perseus.serving.triton_command import Ports

SCRIPTS = Path(triton_process.__file__).parents[2]

BACKEND = """
import json, time
import numpy as np
import triton_python_backend_utils as pb_utils
from perseus_tensors import tensor

class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        self.wanted = {name: value["string_value"] for name, value in parameters.items()}
        time.sleep(float(self.wanted["load_s"]))
        if self.wanted["fault"]:
            raise RuntimeError(self.wanted["fault"])

    def execute(self, requests):
        time.sleep(float(self.wanted["execute_s"]))
        return [self.answer(each) for each in requests]

    def answer(self, request):
        images = np.from_dlpack(pb_utils.get_input_tensor_by_name(request, "input"))
        return pb_utils.InferenceResponse([tensor("output", np.maximum(images, 0))])
"""


@pytest.fixture
def backends(tmp_path: Path) -> Path:
    folder = tmp_path / "backends"
    (folder / "relu").mkdir(parents=True)
    (folder / "relu" / "model.py").write_text(BACKEND)
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return write_repository(tmp_path)


def write_repository(
    folder: Path,
    *,
    backend: str = "relu",
    instances: int = 1,
    load_s: float = 0,
    execute_s: float = 0,
    fault: str = "",
) -> Path:
    config = model_config_pb2.ModelConfig(name="tiny", backend=backend, max_batch_size=4)
    for tensors, name in ((config.input, "input"), (config.output, "output")):
        tensors.add(name=name, data_type=model_config_pb2.TYPE_FP32, dims=[3, 8, 8])
    config.instance_group.add(count=instances, kind=model_config_pb2.ModelInstanceGroup.KIND_CPU)
    wanted = {"load_s": load_s, "execute_s": execute_s, "fault": fault}
    for name, value in wanted.items():
        config.parameters[name].string_value = str(value)
    model = folder / "repository" / "tiny"
    (model / "1").mkdir(parents=True, exist_ok=True)
    (model / "config.pbtxt").write_text(text_format.MessageToString(config))
    return model.parent


def infer(client: triton_grpc.InferenceServerClient, data: np.ndarray) -> np.ndarray:
    tensor = triton_grpc.InferInput("input", list(data.shape), "FP32")
    tensor.set_data_from_numpy(data)
    output = client.infer("tiny", [tensor], client_timeout=20).as_numpy("output")
    assert output is not None
    return output


def signal_like() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32)


def left_behind(owner: int) -> dict[str, list[str]]:
    """Return the processes, shared memory and folders of the servers of a measuring process."""
    mark = f"-{owner}-"
    commands = [" ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])]
    return {
        "processes": [each for each in commands if "perseus-triton-" in each and mark in each],
        "memory": [each.name for each in Path("/dev/shm").glob(f"perseus-triton-*{mark}*")],
        "folders": [
            each.name for each in Path(tempfile.gettempdir()).glob(f"perseus-triton-*{mark}*")
        ],
    }


NOTHING: dict[str, list[str]] = {"processes": [], "memory": [], "folders": []}


def wait_until(holds: Callable[[], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.alone
def test_serves_on_the_loopback_with_its_cores_and_leaves_nothing(
    tmp_path: Path, backends: Path
) -> None:
    repository = write_repository(tmp_path, instances=2)
    core = max(os.sched_getaffinity(0))
    environment = dict(os.environ)
    with embedded_triton(repository, tmp_path / "server.log", [core], backends=backends) as server:
        with triton_grpc.InferenceServerClient(server.grpc_address) as client:
            data = signal_like()
            np.testing.assert_array_equal(infer(client, data), np.maximum(data, 0))

        root = psutil.Process(server.pid)
        processes = [root, *root.children(recursive=True)]
        assert len(processes) == 3  # the server and one stub per instance
        assert all(each.cpu_affinity() == [core] for each in processes)
        listening = [
            connection.laddr
            for each in processes
            for connection in each.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        ]
        assert {address.ip.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}
        ports = {int(server.grpc_address.split(":")[1]), int(server.http_address.split(":")[1])}
        assert ports < {address.port for address in listening}
        maps = Path(f"/proc/{server.pid}/maps").read_text()
        assert len(set(re.findall(r"/dev/shm/(perseus-triton-\S+)", maps))) == 2
        assert not re.search(r"/dev/shm/(?!perseus-triton-)\S*triton", maps)
        assert left_behind(os.getpid())["memory"] == []  # the kernel frees unnamed memory
        left_s = time.monotonic()
    assert time.monotonic() - left_s < 2.0  # Triton's own shutdown takes 3.4 s
    assert left_behind(os.getpid()) == NOTHING
    assert not server.alive()
    assert dict(os.environ) == environment


def test_it_tells_the_metrics_that_dashboards_and_alerts_are_tested_with(
    repository: Path, tmp_path: Path, backends: Path
) -> None:
    """The test does not cover the metrics of GPUs, which follow the documentation of NVIDIA."""
    with embedded_triton(repository, tmp_path / "server.log", [0], backends=backends) as server:
        text = PLAIN.get(server.metrics_url, 5.0).decode()
    told = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    assert told >= fake_triton_metrics.NAMES - fake_triton_metrics.GPU.keys()
    assert set(re.findall(r'[{,](\w+)="', text)) == {"model", "version", "reason"}


def test_finishes_an_accepted_request_before_it_ends(tmp_path: Path, backends: Path) -> None:
    repository = write_repository(tmp_path, execute_s=1.0)
    answers: list[np.ndarray] = []
    with embedded_triton(repository, tmp_path / "server.log", [0], backends=backends) as server:
        client = triton_grpc.InferenceServerClient(server.grpc_address)
        request = threading.Thread(target=lambda: answers.append(infer(client, signal_like())))
        request.start()
        time.sleep(0.3)
    request.join()
    client.close()
    assert len(answers) == 1
    assert left_behind(os.getpid()) == NOTHING


def test_leaves_nothing_when_the_body_raises(
    tmp_path: Path, backends: Path, repository: Path
) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        embedded_triton(repository, tmp_path / "server.log", [0], backends=backends),
    ):
        raise ZeroDivisionError
    assert left_behind(os.getpid()) == NOTHING


def test_a_server_that_was_killed_in_the_body_leaves_nothing(
    tmp_path: Path, backends: Path, repository: Path
) -> None:
    with embedded_triton(repository, tmp_path / "server.log", [0], backends=backends) as server:
        os.kill(server.pid, signal.SIGKILL)
        assert wait_until(lambda: not server.alive(), timeout_s=5)
    assert left_behind(os.getpid()) == NOTHING


@pytest.mark.parametrize("which", [0, 1, 2], ids=["http", "grpc", "metrics"])
def test_takes_other_ports_when_one_is_lost_in_a_race(
    which: int,
    tmp_path: Path,
    backends: Path,
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    choose = triton_process.free_ports
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        chosen: list[list[int]] = []

        def first_choice_is_lost() -> Ports:
            ports = list(choose())
            if not chosen:
                ports[which] = taken
            chosen.append(ports)
            return Ports(*ports)

        monkeypatch.setattr(triton_process, "free_ports", first_choice_is_lost)
        log_path = tmp_path / "server.log"
        with embedded_triton(repository, log_path, [0], backends=backends) as server:
            assert server.http_address == f"127.0.0.1:{chosen[1][0]}"
    assert len(chosen) == 2


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ({"fault": "weights are torn"}, "weights are torn"),
        ({"backend": "relux"}, "unable to find backend library for backend 'relux'"),
    ],
    ids=["model fails", "no such backend"],
)
def test_a_model_that_does_not_load_is_explained(
    model: dict[str, str], reason: str, tmp_path: Path, backends: Path
) -> None:
    repository = write_repository(tmp_path, **model)  # type: ignore[arg-type]
    with (
        pytest.raises(ServerError, match=reason),
        embedded_triton(repository, tmp_path / "server.log", [0], backends=backends),
    ):
        pytest.fail("the server must not become ready")
    assert left_behind(os.getpid()) == NOTHING


@pytest.mark.parametrize("odd", ["my study", "été 研究", "a'b$c;d"])
def test_folders_may_have_any_names(
    tmp_path: Path, backends: Path, monkeypatch: pytest.MonkeyPatch, odd: str
) -> None:
    """The paths of models, logs, backends and temporary files may contain special characters."""
    folder = tmp_path / odd
    folder.mkdir()
    repository = write_repository(folder)
    backends = backends.rename(folder / "backends")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with (
        embedded_triton(repository, folder / "server.log", [0], backends=backends) as server,
        triton_grpc.InferenceServerClient(server.grpc_address) as client,
    ):
        data = signal_like()
        np.testing.assert_array_equal(infer(client, data), np.maximum(data, 0))
    assert left_behind(os.getpid()) == NOTHING


def test_no_plain_temporary_folder_is_explained(
    tmp_path: Path, backends: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my files").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "my files"))
    monkeypatch.setattr(orphans, "_PLACES", ())
    with pytest.raises(ServerError, match=r"/my files\. Set TMPDIR"):
        start_in_vain(tmp_path, repository, backends, [0])


@pytest.mark.parametrize("instances", [1, 3])
def test_a_process_that_cannot_start_is_told_at_once_in_its_own_words(
    tmp_path: Path, backends: Path, monkeypatch: pytest.MonkeyPatch, instances: int
) -> None:
    fill = embedded.fill_folder

    def fill_without_a_library(folder: Path, *rest: Any) -> None:
        fill(folder, *rest)
        stub = folder / "backends" / "python" / "triton_python_backend_stub"
        stub.write_bytes(re.sub(rb"libpython3", b"libpytho__", stub.read_bytes(), count=0))

    monkeypatch.setattr(embedded, "fill_folder", fill_without_a_library)
    repository = write_repository(tmp_path, instances=instances)
    begun_s = time.monotonic()
    with pytest.raises(ServerError, match=r"cannot start: the process.*\n.*stub: .*libpytho__"):
        start_in_vain(tmp_path, repository, backends, [0])
    assert time.monotonic() - begun_s < 60  # the time-out of the start is 120 s
    assert left_behind(os.getpid()) == NOTHING


def test_a_model_that_loads_too_long_is_explained(tmp_path: Path, backends: Path) -> None:
    repository = write_repository(tmp_path, load_s=30)
    with (
        pytest.raises(ServerError, match=r"not ready after 1\.5 s(.|\n)*loading: tiny"),
        embedded_triton(repository, tmp_path / "server.log", [0], 1.5, backends=backends),
    ):
        pytest.fail("the server must not become ready")
    assert left_behind(os.getpid()) == NOTHING


def start_in_vain(tmp_path: Path, repository: Path, backends: Path, cores: list[int]) -> None:
    with embedded_triton(repository, tmp_path / "server.log", cores, backends=backends):
        pytest.fail("the server must not start")


def test_cores_that_are_not_there_are_explained(
    tmp_path: Path, backends: Path, repository: Path
) -> None:
    with pytest.raises(ServerError, match="no CPU core is left"):
        start_in_vain(tmp_path, repository, backends, [])
    with pytest.raises(ServerError, match="no longer contains all cores"):
        start_in_vain(tmp_path, repository, backends, [0, 4000])


def test_an_unsuitable_installation_is_explained(
    tmp_path: Path, backends: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as other_python:
        version = SimpleNamespace(major=3, minor=99)
        other_python.setattr(
            triton_wheel, "sys", SimpleNamespace(version_info=version, prefix=sys.prefix)
        )
        with pytest.raises(ServerError, match=r"no stub for Python 3\.99 \(only for .*3\.11"):
            start_in_vain(tmp_path, repository, backends, [0])
    monkeypatch.setattr(triton_wheel.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(ServerError, match="nvidia-pytriton is missing"):
        start_in_vain(tmp_path, repository, backends, [0])


# --- the end of the measuring process ------------------------------------------------------------

MEASURING = """
import sys, time
from pathlib import Path
from perseus.serving.launchers import embedded
from perseus.serving.launchers.embedded import embedded_triton
from perseus.host.signals import terminate_as_exit

repository, backends, log = map(Path, sys.argv[1:])
with terminate_as_exit(), embedded_triton(repository, log, [0], backends=backends):
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def measure(tmp_path: Path, backends: Path) -> Iterator[Callable[[Path], subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def start(repository: Path) -> subprocess.Popen[str]:
        arguments = [repository, backends, tmp_path / "measured.log"]
        process = subprocess.Popen(
            [sys.executable, "-c", MEASURING, *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def wait_for_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert left_behind(process.pid)["processes"]


@pytest.mark.parametrize(
    ("signals", "returncodes"),
    [
        ([signal.SIGTERM], {128 + signal.SIGTERM}),
        ([signal.SIGINT], {-signal.SIGINT}),
        # later signals may reach the interpreter after the cleanup
        (
            [signal.SIGTERM, signal.SIGHUP, signal.SIGTERM],
            {128 + signal.SIGTERM, -signal.SIGHUP, -signal.SIGTERM},
        ),
    ],
    ids=["terminated", "interrupted", "impatiently"],
)
def test_a_measuring_process_that_is_asked_to_end_leaves_nothing(
    signals: list[signal.Signals],
    returncodes: set[int],
    repository: Path,
    measure: Callable[[Path], subprocess.Popen[str]],
) -> None:
    process = measure(repository)
    wait_for_ready(process)
    for each in signals:
        process.send_signal(each)
        time.sleep(0.01)
    assert process.wait(timeout=30) in returncodes  # without a signal, the process ends after 60 s
    assert left_behind(process.pid) == NOTHING


def test_a_measuring_process_that_is_asked_to_end_while_a_model_loads_leaves_nothing(
    tmp_path: Path, measure: Callable[[Path], subprocess.Popen[str]]
) -> None:
    process = measure(write_repository(tmp_path, load_s=30))
    assert wait_until(lambda: bool(left_behind(process.pid)["memory"]), timeout_s=10)
    process.terminate()
    assert process.wait(timeout=10) == 128 + signal.SIGTERM
    assert left_behind(process.pid) == NOTHING


def test_a_measuring_process_that_is_killed_leaves_no_server_and_the_next_start_sweeps(
    tmp_path: Path,
    repository: Path,
    backends: Path,
    measure: Callable[[Path], subprocess.Popen[str]],
) -> None:
    process = measure(repository)
    wait_for_ready(process)
    process.kill()
    process.wait()
    assert left_behind(process.pid)["memory"] == []
    assert wait_until(lambda: not left_behind(process.pid)["processes"], timeout_s=15)

    while_loading = measure(write_repository(tmp_path, load_s=30))
    assert wait_until(lambda: bool(left_behind(while_loading.pid)["memory"]), timeout_s=10)
    while_loading.kill()
    while_loading.wait()

    # when `while_loading` started, its launcher removed the files that `process` left
    assert left_behind(process.pid) == NOTHING
    repository = write_repository(tmp_path)
    with embedded_triton(repository, tmp_path / "server.log", [0], backends=backends):
        assert left_behind(while_loading.pid) == NOTHING


def test_shared_memory_grows_without_its_name(tmp_path: Path, backends: Path) -> None:
    repository = write_repository(tmp_path)
    config = repository / "tiny" / "config.pbtxt"
    config.write_text(config.read_text().replace("dims: 8", "dims: 512"))
    with (
        embedded_triton(
            repository, tmp_path / "server.log", [0], backends=backends, shm_mib=4
        ) as server,
        triton_grpc.InferenceServerClient(
            server.grpc_address, channel_args=[("grpc.max_receive_message_length", -1)]
        ) as client,
    ):
        data = np.random.default_rng(0).normal(size=(4, 3, 512, 512)).astype(np.float32)
        assert data.nbytes > 4 * 2**20
        for _ in range(2):
            np.testing.assert_array_equal(infer(client, data), np.maximum(data, 0))
        assert left_behind(os.getpid())["memory"] == []


def test_a_second_server_takes_nothing_from_the_first(
    tmp_path: Path, backends: Path, repository: Path
) -> None:
    with embedded_triton(repository, tmp_path / "1.log", [0], backends=backends) as first:
        with embedded_triton(repository, tmp_path / "2.log", [0], backends=backends) as second:
            assert first.grpc_address != second.grpc_address
        with triton_grpc.InferenceServerClient(first.grpc_address) as client:
            infer(client, signal_like())
