"""Tests that configurations, weights and models from others cannot run code, and cannot reach files
outside their folders."""

from __future__ import annotations

import ast
import hashlib
import os
import pickle
import re
import urllib.parse
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml
from onnx import TensorProto, helper

from perseus.models.architectures import Classifier
from perseus.models.networks import ExportError, WeightsError, build, import_torchvision
from perseus.models.onnx_export import check_onnx
from perseus.models.reference import Reference
from perseus.serving.triton_command import Ports, arguments, free_ports
from perseus.study import files, planning
from perseus.study.problems import ConfigError
from perseus.study.read import read_study

ROOT = Path(__file__).parents[2]
CODE = sorted((ROOT / "scripts").rglob("*.py"))
RULES = [ROOT / "Snakefile", *sorted((ROOT / "rules").glob("*.smk"))]
TEXTS = [*CODE, *RULES, *(p for p in (ROOT / "profiles").rglob("*") if p.is_file())]


# --- no configuration value reaches a shell -------------------------------------------------------

FORBIDDEN = {
    *("eval", "exec", "compile", "__import__", "os.system", "os.popen"),
    *("subprocess.getoutput", "subprocess.getstatusoutput", "asyncio.create_subprocess_shell"),
    *("pickle.load", "pickle.loads", "marshal.loads", "shelve.open", "joblib.load"),
    *("yaml.load", "yaml.unsafe_load", "yaml.full_load"),
}


def read(configuration, folder=ROOT):
    return read_study(configuration, prices=ROOT / "config" / "prices.csv", folder=folder)


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def unsafe(path: Path) -> list[str]:
    """Return the calls, with their lines, that execute text as code or as a shell command."""
    found = []
    for name, call in calls(path):
        options = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        if (
            name in FORBIDDEN
            or name.startswith(("os.spawn", "os.exec"))
            or options.get("shell", "False") != "False"
            or options.get("allow_pickle", "False") != "False"
            or (name == "torch.load" and options.get("weights_only") != "True")
        ):
            found.append(f"{path}:{call.lineno}: {name}")
    return found


def test_no_code_runs_text():
    assert [call for path in CODE for call in unsafe(path)] == []


@pytest.mark.parametrize(
    "line",
    [
        "subprocess.run(command, shell=True)",
        "subprocess.Popen(command, shell=wanted)",
        "os.system(command)",
        "eval(text)",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "np.load(path, allow_pickle=True)",
        "yaml.load(text, Loader=yaml.Loader)",
    ],
)
def test_unsafe_code_would_be_found(line, tmp_path):
    (tmp_path / "module.py").write_text(line)
    assert len(unsafe(tmp_path / "module.py")) == 1


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_no_rule_has_a_shell(path):
    assert not re.search(r"^\s*(shell|run|wrapper|notebook)\s*:", path.read_text(), re.MULTILINE)


# --- no name is a path, an option or a command ----------------------------------------------------

ATTACKS = [
    *(
        "",
        ".",
        "..",
        "../x",
        "a/b",
        "/etc",
        "a\\b",
        ".a",
        "-a",
        "--x=y",
        "a\n",
        "a\nb",
        "a\0",
        "a b",
    ),
    *(
        "$(id)",
        "`id`",
        "a;id",
        "a|id",
        "{wildcards}",
        "{a}",
        "a*",
        "~",
        "é",
        "\uff41",
        "a\u2028",
        "a\u200b",
    ),
    *("a:b", "a%2e", "a" * 65, 7, None, ["a"], {"a": 1}, True),
]


def study() -> dict:
    return yaml.safe_load("""
study: base
models:
  - {name: resnet18, sla: {latency_ms: 100}}
servers:
  - {name: cpu1, cores: 1, price: {instance: n1-standard-1, region: us-central1}}
scenarios:
  - {name: resnet18, servers: [cpu1], tenants: [{model: resnet18, name: resnet18}]}
""")


def problems(configuration: dict) -> str:
    with pytest.raises(ConfigError) as caught:
        read(configuration)
    return "\n".join(caught.value.problems)


@pytest.mark.parametrize("name", ATTACKS, ids=repr)
def test_names_that_could_leave_a_folder_or_a_command_are_refused(name):
    for place in ("study", "models[0].name", "servers[0].name", "scenarios[0].name",
                  "scenarios[0].tenants[0].name"):  # fmt: skip
        configuration = study()
        *way, last = re.findall(r"[a-z]+|\d+", place)
        part = configuration
        for step in way:
            part = part[int(step) if step.isdigit() else step]
        part[last] = name
        assert f"{place}: " in problems(configuration)


@pytest.mark.parametrize("launcher", ["docker", "podman", "apptainer"])
@pytest.mark.parametrize(
    "image",
    ["", "-v=/:/host", "--privileged", "a b", "a\n", "a\n--privileged", "a\0", "$(id)", "a;id",
     "`id`", "{a}", "é", "a,b", 'a"b', "a" * 256, 7, None, ["a"],
     "instance://a", "http://a/b.sif", "file://../a"],
    ids=repr,
)  # fmt: skip
def test_images_that_could_be_an_option_or_a_command_are_refused(launcher, image):
    configuration = study()
    configuration["servers"][0] |= {"launcher": launcher, "image": image}
    assert "servers[0].image: " in problems(configuration)


@pytest.mark.parametrize(
    ("launcher", "image"),
    [
        ("docker", "nvcr.io/nvidia/tritonserver:24.10-py3"),
        ("podman", "localhost:5000/triton@sha256:" + "0" * 64),
        ("apptainer", "docker://nvcr.io/nvidia/tritonserver:24.10-py3"),
    ],
)
def test_images_as_they_are_named_are_taken(launcher, image):
    configuration = study()
    configuration["servers"][0] |= {"launcher": launcher, "image": image}
    loaded = read(configuration)
    (cell,) = loaded.cells.values()
    assert planning.measure_task(loaded, cell).server.image == image


@pytest.mark.parametrize(
    "image", ["{folder}/tritonserver_24.10-py3.sif", "triton.sif", "../images/triton.sif"]
)
def test_an_image_that_is_a_file_is_there(image, tmp_path):
    folder, configuration = tmp_path / "images", study()
    image = image.format(folder=folder)
    configuration["servers"][0] |= {"launcher": "apptainer", "image": image}
    folder.mkdir()
    told = re.escape(f"servers[0].image: there is no file {image!r} (make the file with")
    with pytest.raises(ConfigError, match=told):
        read(configuration, folder)
    (folder / image).touch()
    loaded = read(configuration, folder)
    (cell,) = loaded.cells.values()
    assert planning.measure_task(loaded, cell).server.image == image


@pytest.mark.parametrize("launcher", ["docker", "podman", "apptainer"])
def test_an_image_belongs_to_a_container_and_to_nothing_else(launcher):
    configuration = study()
    configuration["servers"][0]["launcher"] = launcher
    assert f"servers[0].image: is missing: launcher {launcher!r}" in problems(configuration)
    configuration["servers"][0] |= {"launcher": "embedded", "image": "triton"}
    assert "servers[0].image: applies only to the launchers apptainer, docker" in problems(
        configuration
    )


def test_every_file_of_a_study_lies_in_its_folders():
    configuration = study()
    configuration["study"] = "a-_"
    loaded = read(configuration)
    for cell in loaded.cells.values():
        for path in [*files.raw(loaded, [cell]), *files.references(loaded, cell.scenario)]:
            assert os.path.normpath(path).startswith("results/a-_/")
        for path in files.cell_inputs(loaded, cell)["repository"]:
            assert os.path.normpath(path).startswith("model_repository/a-_/")


@pytest.mark.parametrize(
    "weights", ["{a}.pt", "../../etc/passwd\n", "-x.pt", "a;id.pt", "http://a/b"]
)
def test_weights_are_a_file_that_is_there_or_nothing(weights):
    configuration = study()
    configuration["models"][0]["weights"] = weights
    assert "models[0].weights: " in problems(configuration)


# --- every server listens on the loopback only ----------------------------------------------------


def test_a_server_has_no_address_but_the_loopbacks():
    given = dict(each.split("=", 1) for each in arguments("n", Path("m"), Ports(1, 2, 3), 4, 0)
                 if each.count("=") == 1)  # fmt: skip
    for service, port in (("http", "1"), ("grpc", "2"), ("metrics", "3")):
        assert given[f"--{service}-address"] == "127.0.0.1"
        assert given[f"--{service}-port"] == port
    assert len(set(free_ports())) == 3


def test_no_file_names_an_address_of_all_interfaces():
    address = re.compile(r"0\.0\.0\.0|\[::\]|INADDR_ANY|--publish|network=bridge")
    assert CODE and [path for path in TEXTS if address.search(path.read_text())] == []


# --- loaded files execute nothing -----------------------------------------------------------------


class Burglar:
    """A pickle that creates a file when it is loaded."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self):
        return Path.touch, (self.trace,)


def weights_file(path: Path, content: object, kind: str) -> Path:
    torch, _ = import_torchvision()
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "torch":
        torch.save(content, path)
    elif kind == "pickle":
        path.write_bytes(pickle.dumps(content))
    else:  # the file format of torch from 2016
        torch.save(content, path, _use_new_zipfile_serialization=False)
    return path


@pytest.mark.parametrize("kind", ["torch", "pickle", "legacy"])
@pytest.mark.parametrize("nested", [False, True])
def test_weights_of_a_file_execute_nothing(tmp_path, kind, nested):
    trace = tmp_path / "executed"
    content = {"conv1.weight": Burglar(trace)} if nested else Burglar(trace)
    path = weights_file(tmp_path / "weights.pt", content, kind)
    with pytest.raises(ExportError, match="not a state_dict that can be loaded safely"):
        build(Classifier("resnet18"), str(path), np.zeros((4, 3, 64, 64), np.float32))
    assert not trace.exists()
    pickle.loads(pickle.dumps(Burglar(trace)))
    assert trace.exists()  # without protection, the pickle does execute


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    return tmp_path / "hub" / "checkpoints"


def url(architecture: str) -> str:
    _, torchvision = import_torchvision()
    return torchvision.models.get_model_weights(architecture)["DEFAULT"].url


def test_downloaded_weights_execute_nothing(tmp_path, cache):
    trace = tmp_path / "executed"
    weights_file(cache / Path(url("resnet18")).name, {"conv1.weight": Burglar(trace)}, "torch")
    with pytest.raises(
        WeightsError,
        match=r"cannot be loaded safely(.|\n)*contains resnet18-\w+\.pth, remove this file",
    ):
        build(Classifier("resnet18"), "DEFAULT", np.zeros((4, 3, 64, 64), np.float32))
    assert not trace.exists()


def test_a_download_is_checked_by_its_hash(tmp_path, cache, monkeypatch):
    torch, torchvision = import_torchvision()
    genuine = weights_file(
        tmp_path / "genuine.pth",
        torchvision.models.squeezenet1_1(weights=None).state_dict(),
        "torch",
    )
    digest = hashlib.sha256(genuine.read_bytes()).hexdigest()
    opened = torch.hub.urlopen
    monkeypatch.setattr(torch.hub, "urlopen", lambda _: opened(genuine.as_uri()))
    choice = torchvision.models.get_model_weights("squeezenet1_1")["DEFAULT"]
    images = np.zeros((4, 3, 64, 64), np.float32)

    with pytest.raises(WeightsError, match=r"invalid hash value"):
        build(Classifier("squeezenet1_1"), "DEFAULT", images)
    assert not list(cache.glob("*.pth"))

    published = type(choice.value)(
        urllib.parse.urljoin(choice.url, f"squeezenet1_1-{digest[:8]}.pth"),
        choice.value.transforms,
        choice.value.meta,
    )
    monkeypatch.setattr(choice, "_value_", published)
    assert build(Classifier("squeezenet1_1"), "DEFAULT", images) is not None


def test_a_state_dict_is_no_way_out_of_its_archive(tmp_path):
    path = tmp_path / "a" / "b" / "weights.pt"
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../escaped", "x")
    with pytest.raises(ExportError, match="not a state_dict that can be loaded safely"):
        build(Classifier("resnet18"), str(path), np.zeros((4, 3, 64, 64), np.float32))
    assert list(tmp_path.rglob("escaped")) == []


def onnx_with_weights_at(path: Path, location: str) -> Path:
    """Write a model that adds four weights from another file."""
    weights = TensorProto(
        name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL
    )
    for key, value in (("location", location), ("offset", "0"), ("length", "16")):
        weights.external_data.add(key=key, value=value)
    graph = helper.make_graph(
        [helper.make_node("Add", ["input", "w"], ["output"])],
        "g",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["n", 4])],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 10
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("how", ["relative", "absolute", "link"])
def test_an_onnx_file_reads_no_file_outside_its_folder(tmp_path, how):
    """ONNX Runtime and OpenVINO refuse an ONNX file that reads weights outside its folder. The test
    fails if a newer version accepts the file."""
    import onnxruntime
    import openvino

    secret, folder = tmp_path / "secret", tmp_path / "model"
    folder.mkdir()
    secret.write_bytes(np.arange(4, dtype=np.float32).tobytes())
    (folder / "inside").write_bytes(secret.read_bytes())
    (folder / "link").symlink_to(secret)
    location = {"relative": "../secret", "absolute": str(secret), "link": "link"}[how]

    images = np.eye(4, dtype=np.float32)
    inside = onnx_with_weights_at(folder / "model.onnx", "inside")
    reference = Reference.of_classifier(images, images + np.arange(4, dtype=np.float32))
    check_onnx(inside, reference)  # weights inside the folder of the model are allowed

    path = onnx_with_weights_at(folder / "model.onnx", location)
    with pytest.raises(ExportError, match="onnxruntime cannot run"):
        check_onnx(path, reference)
    with pytest.raises(Exception, match=r"(?i)external data"):
        onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    if how != "link":
        with pytest.raises(RuntimeError):
            openvino.Core().compile_model(str(path), "CPU")
