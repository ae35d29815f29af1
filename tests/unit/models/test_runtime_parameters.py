"""Tests of the runtimes' own parameters in a repository.

Some tests add an invented runtime, which needs no change of other modules.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from perseus.host.machine import PACKAGES
from perseus.models import runtimes
from perseus.models.repository import RepositoryError, model_config, write_tenant
from perseus.models.runtimes.pytorch import captured_sizes
from perseus.models.tensors import ModelTensors
from perseus.serving.containers import contents
from perseus.serving.triton_command import BACKENDS
from perseus.study.runtimes import RUNTIMES
from perseus.study.tasks.measure import MeasuredServer
from perseus.study.tasks.repository import ServedTenant


def tenant(runtime: str, **more: Any) -> ServedTenant:
    file = RUNTIMES[runtime].model_file
    return ServedTenant(name="resnet", model="resnet50", runtime=runtime, model_file=file, **more)


def config(of: ServedTenant) -> pb.ModelConfig:
    return model_config(of, ModelTensors.of_classifier((3, 224, 224), 1000))


def parameters(of: ServedTenant) -> dict[str, str]:
    return {key: value.string_value for key, value in config(of).parameters.items()}


@pytest.mark.parametrize("name", RUNTIMES)
def test_each_runtime_of_the_registry_can_be_written_and_has_the_backends_it_says(name):
    facts = RUNTIMES[name]
    gpus = () if "cpu" in facts.precisions else (0,)
    made = config(tenant(name, gpus=gpus))
    assert (made.backend or made.platform, made.default_model_filename) == (
        facts.platform or name,
        facts.model_file,
    )
    assert (BACKENDS / name / "model.py").is_file() == facts.python_backend


def test_the_versions_of_what_serves_stand_beside_every_number():
    assert {each for runtime in RUNTIMES.values() for each in runtime.packages} <= set(PACKAGES)


def test_onnxruntime_and_openvino_get_the_parameters_that_their_native_backends_read():
    assert parameters(tenant("onnxruntime", intra_op_threads=2)) == {
        "intra_op_thread_count": "2",
        "inter_op_thread_count": "1",
    }
    assert parameters(tenant("openvino", intra_op_threads=2, max_batch_size=1)) == {
        "INFERENCE_NUM_THREADS": "2",
        "NUM_STREAMS": "1",
    }
    # In OpenVINO, one compiled model serves all instances, so its threads are the sum over the
    # instances.
    several = parameters(tenant("openvino", intra_op_threads=2, instances=3, precision="bf16"))
    assert several["INFERENCE_NUM_THREADS"] == "6"
    assert several["NUM_STREAMS"] == "3"
    assert several["HINT_BF16"] == "YES"
    assert several["ENABLE_BATCH_PADDING"] == "YES"


def test_a_plan_of_tensorrt_is_a_platform_and_has_no_parameters():
    made = config(tenant("tensorrt", gpus=(0,), precision="fp16"))
    assert (made.platform, made.backend) == ("tensorrt_plan", "")
    assert made.default_model_filename == "model.plan"
    assert not made.parameters
    # The clients of all precisions send the same tensors.
    assert (made.input[0].data_type, made.output[0].data_type) == (pb.TYPE_FP32, pb.TYPE_FP32)


def test_pytorch_is_told_its_precision_and_on_a_gpu_its_graphs():
    assert parameters(tenant("pytorch", intra_op_threads=2)) == {"intra_op_thread_count": "2"}
    assert parameters(tenant("pytorch", gpus=(0,), precision="fp16", max_batch_size=6)) == {
        "intra_op_thread_count": "1",
        "precision": "fp16",
        "captured_batch_sizes": "1,2,4,6",
    }


@pytest.mark.parametrize(
    ("largest", "preferred", "expected"),
    [(1, (), [1]), (8, (), [1, 2, 4, 8]), (20, (12,), [1, 2, 4, 8, 12, 16, 20])],
)
def test_captured_sizes_cover_every_batch_and_at_most_double_it(largest, preferred, expected):
    sizes = captured_sizes(largest, preferred)
    assert sizes == expected
    for batch in range(1, largest + 1):
        assert min(size for size in sizes if size >= batch) < 2 * batch


@pytest.mark.parametrize(
    ("refused", "match"),
    [
        (tenant("tensorrt"), "tensorrt runs on GPUs only"),
        (tenant("openvino", gpus=(0,)), "openvino runs on CPUs only"),
        (tenant("openvino", precision="fp16"), "not compute in fp16: use the runtime onnxruntime"),
        (tenant("onnxruntime", precision="bf16"), "not compute in bf16: use the runtime openvino"),
        (tenant("pytorch", precision="int8"), "compute in int8: use the runtime openvino or"),
    ],
)
def test_a_tenant_that_its_runtime_would_refuse_is_not_written(refused, match):
    with pytest.raises(RepositoryError, match=match):
        config(refused)


# An invented runtime: a registry entry, a module of its name, and a backend


@pytest.fixture
def ncnn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    facts = replace(
        RUNTIMES["pytorch"], model_file="model.ncnn", precisions={"cpu": ("fp32", "fp16")}
    )
    monkeypatch.setitem(RUNTIMES, "ncnn", facts)
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "ncnn.py").write_text(
        "def parameters(tenant):\n    return {'threads': str(tenant.intra_op_threads)}\n"
    )
    monkeypatch.setattr(runtimes, "__path__", [*runtimes.__path__, str(tmp_path / "modules")])
    return "ncnn"


def test_a_new_runtime_is_written_into_a_repository(ncnn, tmp_path):
    root, model = tmp_path / "repository", tmp_path / "exported"
    check = ModelTensors.of_classifier((3, 8, 8), 10).plain()
    model.write_bytes(b"layers")
    write_tenant(root, tenant(ncnn, intra_op_threads=3, precision="fp16"), model, check)
    files = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    assert files == ["resnet/1/model.ncnn", "resnet/config.pbtxt"]
    made = text_format.Parse((root / "resnet/config.pbtxt").read_text(), pb.ModelConfig())
    assert (made.backend, made.default_model_filename) == ("ncnn", "model.ncnn")
    assert made.parameters["threads"].string_value == "3"
    with pytest.raises(RepositoryError, match="ncnn runs on CPUs only"):
        config(tenant(ncnn, gpus=(0,)))


def test_a_new_runtime_brings_its_backend_into_a_container(ncnn):
    server = MeasuredServer(
        name="cpu1",
        device="cpu",
        launcher="docker",
        image="triton:1",
        runtime=ncnn,
        cores=1,
        gpus=(),
        remote=None,
    )
    assert contents(server).backend == BACKENDS / "ncnn"
