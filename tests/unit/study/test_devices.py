"""Tests of GPU servers in the configuration: required keys and allowed runtimes."""

from __future__ import annotations

import pytest
from unit.study.test_read import cells, load, model, problems, scenario

from perseus.study import files, planning
from perseus.study.runtimes import RUNTIMES

PRICE = {"instance": "n1-standard-1", "region": "us-central1"}
GPU = {
    "name": "cpu1",
    "device": "gpu",
    "gpus": [0],
    "runtime": "pytorch",
    "cores": 1,
    "price": {**PRICE, "accelerator": "T4"},
}
OPENVINO = {"name": "cpu1", "runtime": "openvino", "cores": 1, "price": PRICE}
IMAGE = "nvcr.io/nvidia/tritonserver:24.10-py3"
TENSORRT = {**GPU, "runtime": "tensorrt", "launcher": "docker", "image": IMAGE}

ON_CPUS = [name for name, runtime in RUNTIMES.items() if "cpu" in runtime.precisions]


def without(key):
    return {name: value for name, value in GPU.items() if name != key}


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (
            without("gpus"),
            "servers[0].gpus: is missing: `device` is gpu (write the numbers of the GPUs, such as"
            " [0])",
        ),
        (
            {**GPU, "device": "cpu"},
            "servers[0].gpus: applies only to `device: gpu`, but `device` is 'cpu'",
        ),
        (
            {**GPU, "runtime": "openvino"},
            "servers[0].runtime: 'openvino' does not run on device 'gpu'"
            " (use onnxruntime or pytorch or tensorrt)",
        ),
        (
            {**without("gpus"), "device": "cpu", "runtime": "tensorrt", "launcher": "docker",
             "image": IMAGE},
            "servers[0].runtime: 'tensorrt' does not run on device 'cpu'"
            f" (use {' or '.join(ON_CPUS)})",
        ),
        (
            {**GPU, "runtime": "tensorrt"},
            "servers[0].launcher: 'embedded' has no TensorRT (use docker, podman or apptainer"
            " with an image of NVIDIA)",
        ),
        (
            {**GPU, "runtime": "tensorrt", "launcher": "remote", "remote": {"host": "far"}},
            "servers[0].runtime: a TensorRT plan must be built on the server's machine (use docker,"
            " podman or apptainer there, or onnxruntime)",
        ),
        ({**GPU, "gpus": [-1]}, "servers[0].gpus[0]: must be >= 0, not -1"),
        ({**GPU, "gpus": []}, "servers[0].gpus: must have at least 1 item"),
        ({**GPU, "gpus": ["0; reboot"]},
         "servers[0].gpus[0]: must be a whole number, not '0; reboot'"),
        ({**GPU, "device": "gpus"}, "servers[0].device: 'gpus' is not known (did you mean 'gpu'?)"),
    ],
)  # fmt: skip
def test_a_server_that_cannot_be_is_refused(server, expected):
    assert problems({"servers": [server]}) == (expected,)


def test_a_remote_server_may_have_models_in_tensorrt_of_its_own():
    far = {**TENSORRT, "launcher": "remote", "remote": {"host": "far"}}
    del far["image"]
    own = {"models": [model(served_model="own")], "scenarios": [scenario("squeezenet1_1")]}
    assert load({"servers": [far], **own})


def test_a_torch_program_with_uint8_requests_is_not_for_a_gpu():
    """The program contains the conversion to float32, and the backend would convert to fp16."""
    pixels = {"models": [model(request="uint8"), model("mobilenet_v3_small")]}
    load(pixels)
    load({**pixels, "servers": [{**GPU, "runtime": "onnxruntime"}]})
    (told, *_) = problems({**pixels, "servers": [GPU]})
    assert "'squeezenet1_1' has request 'uint8', which runtime 'pytorch' on the GPU server" in told


def test_fp16_needs_a_gpu_and_bf16_a_cpu():
    half = {"models": [model(precision="fp16"), model("mobilenet_v3_small")]}
    (told,) = problems(half)
    assert told.startswith(
        "scenarios[0].tenants[0].model: server 'cpu1' with device 'cpu' cannot run 'squeezenet1_1'"
        " in fp16 (the server needs device gpu with runtime onnxruntime or device gpu with"
    )
    assert load({**half, "servers": [GPU]}).models["squeezenet1_1"].precision == "fp16"
    (told,) = problems(
        {"models": [model(precision="bf16"), model("mobilenet_v3_small")], "servers": [GPU]}
    )
    assert told.endswith("in bf16 (the server needs device cpu with runtime openvino)")


def test_the_numbers_of_the_gpus_measure_again_and_build_nothing_again():
    """A server numbers its GPUs from 0, so the model repository only depends on their number."""

    def tasks(gpus):
        price = {**PRICE, "accelerator": f"T4:{len(gpus)}"}
        study = load({"servers": [{**GPU, "gpus": gpus, "price": price}]})
        first = cells(study)[0]
        scenario = first.scenario
        return (
            planning.repository_task(study, scenario.id),
            planning.measure_task(study, first),
        )

    (one, measured), (other, measured_other) = tasks([0]), tasks([3])
    assert one == other
    assert measured != measured_other
    assert tasks([0, 1])[0] != one
    assert [tenant.gpus for tenant in one.tenants] == [(0,)]


@pytest.mark.parametrize(
    ("server", "precision", "served", "kept"),
    [
        (GPU, "fp32", "results/base/models/squeezenet1_1/model.pt2", "1/model.pt2"),
        (GPU, "fp16", "results/base/models/squeezenet1_1/model.pt2", "1/model.pt2"),
        ({**GPU, "runtime": "onnxruntime"}, "fp16",
         "results/base/models/squeezenet1_1/model.fp16.onnx", "1/model.onnx"),
        (OPENVINO, "int8",
         "results/base/models/squeezenet1_1/model.int8.onnx", "1/model.onnx"),
        (TENSORRT, "int8", "results/base/plans/cpu1/squeezenet1_1/model.plan", "1/model.plan"),
        (TENSORRT, "fp16", "results/base/plans/cpu1/squeezenet1_1/model.plan", "1/model.plan"),
    ],
)  # fmt: skip
def test_each_runtime_is_given_the_file_that_it_loads(server, precision, served, kept):
    study = load(
        {
            "servers": [server],
            "models": [model(precision=precision)],
            "scenarios": [scenario("squeezenet1_1", name="squeezenet1_1")],
        }
    )
    (alone,) = study.scenarios.values()
    assert files.served(study, alone.id, "squeezenet1_1") == served
    assert files.repository_inputs(study, alone)["models"] == [served]
    (tenant,) = planning.repository_task(study, alone.id).tenants
    assert f"1/{tenant.model_file}" == kept
