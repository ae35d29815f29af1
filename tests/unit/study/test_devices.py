"""A GPU server in the configuration: what it needs, what it may run, what its repository says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_config import load, model, problems, scenario
from tritonclient.grpc import model_config_pb2 as pb

from perseus.models.repository import RepositoryError, TenantSpec, captured_sizes, model_config
from perseus.study import plan

PRICE = {"instance": "n1-standard-1", "region": "us-central1"}
GPU = {
    "name": "cpu1",
    "device": "gpu",
    "gpus": [0],
    "runtime": "pytorch",
    "cores": 1,
    "price": PRICE,
}
OPENVINO = {"name": "cpu1", "runtime": "openvino", "cores": 1, "price": PRICE}
IMAGE = "nvcr.io/nvidia/tritonserver:24.10-py3"
TENSORRT = {**GPU, "runtime": "tensorrt", "launcher": "docker", "image": IMAGE}
TENANT = TenantSpec("resnet", "resnet50", runtime="pytorch")


def without(key):
    return {name: value for name, value in GPU.items() if name != key}


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (
            without("gpus"),
            "servers[0].gpus: is missing: device is gpu (the numbers of its GPUs, such as [0])",
        ),
        (
            {**GPU, "device": "cpu"},
            "servers[0].gpus: is of device: gpu only, and device is 'cpu'",
        ),
        (
            {**GPU, "runtime": "openvino"},
            "servers[0].runtime: 'openvino' does not run on device 'gpu'"
            " (take onnxruntime or pytorch or tensorrt)",
        ),
        (
            {**without("gpus"), "device": "cpu", "runtime": "tensorrt", "launcher": "docker",
             "image": IMAGE},
            "servers[0].runtime: 'tensorrt' does not run on device 'cpu'"
            " (take onnxruntime or openvino or pytorch)",
        ),
        (
            {**GPU, "runtime": "tensorrt"},
            "servers[0].launcher: 'embedded' has no TensorRT (take docker, podman or apptainer,"
            " with an image of NVIDIA's)",
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


def test_fp16_needs_a_gpu_and_bf16_a_cpu():
    half = {"models": [model(precision="fp16"), model("mobilenet_v3_small")]}
    (told,) = problems(half)
    assert told.startswith(
        "scenarios[0].tenants[0].model: server 'cpu1' with device 'cpu' cannot run 'squeezenet1_1'"
        " in fp16 (it needs device: gpu with runtime: onnxruntime or device: gpu with"
    )
    assert load({**half, "servers": [GPU]}).models[0].precision == "fp16"
    (told,) = problems(
        {"models": [model(precision="bf16"), model("mobilenet_v3_small")], "servers": [GPU]}
    )
    assert told.endswith("in bf16 (it needs device: cpu with runtime: openvino)")


def test_the_numbers_of_the_gpus_measure_again_and_build_nothing_again():
    """A server numbers the GPUs that it gets from 0 on; only how many there are is in its
    repository."""

    def slices(gpus):
        study = load({"servers": [{**GPU, "gpus": gpus}]})
        first = plan.cells(study)[0]
        scenario = first.scenario
        return (
            plan.repository_slice(study, scenario.id, scenario.tenants[0].name),
            plan.measure_slice(study, first),
        )

    (one, measured), (other, measured_other) = slices([0]), slices([3])
    assert one == other
    assert measured != measured_other
    assert slices([0, 1])[0] != one
    assert one["tenant"]["gpus"] == [0]


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
    (alone,) = study.scenarios
    assert plan.served_file(study, alone.id, "squeezenet1_1") == served
    assert plan.repository_files(study, alone)[1].endswith(f"/squeezenet1_1/{kept}")


# The repository


def config(tenant: TenantSpec) -> pb.ModelConfig:
    return model_config(tenant, (3, 224, 224), 1000)


def test_instances_are_on_every_gpu_of_the_server():
    kinds = pb.ModelInstanceGroup.Kind
    (group,) = config(replace(TENANT, gpus=(0, 1), instances=2)).instance_group
    assert (group.kind, list(group.gpus), group.count) == (kinds.KIND_GPU, [0, 1], 2)
    (group,) = config(TENANT).instance_group
    assert (group.kind, list(group.gpus)) == (kinds.KIND_CPU, [])


def test_a_plan_of_tensorrt_is_a_platform_and_has_no_parameters():
    made = config(replace(TENANT, runtime="tensorrt", gpus=(0,), precision="fp16"))
    assert (made.platform, made.backend) == ("tensorrt_plan", "")
    assert made.default_model_filename == "model.plan"
    assert not made.parameters
    # The clients of all precisions are the same.
    assert (made.input[0].data_type, made.output[0].data_type) == (pb.TYPE_FP32, pb.TYPE_FP32)


def test_pytorch_is_told_its_precision_and_on_a_gpu_its_graphs():
    def parameters(tenant):
        return {key: value.string_value for key, value in config(tenant).parameters.items()}

    assert parameters(replace(TENANT, intra_op_threads=2)) == {"intra_op_thread_count": "2"}
    assert parameters(replace(TENANT, gpus=(0,), precision="fp16", max_batch_size=6)) == {
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
    ("changes", "match"),
    [
        ({"runtime": "tensorrt"}, "tensorrt serves on GPUs alone"),
        ({"runtime": "openvino", "gpus": (0,)}, "openvino serves on CPUs alone"),
        ({"runtime": "openvino", "precision": "fp16"}, "openvino does not compute in fp16"),
        ({"precision": "int8"}, "pytorch gains nothing from int8"),
    ],
)
def test_a_tenant_that_its_runtime_would_refuse_is_not_written(changes, match):
    with pytest.raises(RepositoryError, match=match):
        config(replace(TENANT, **changes))
