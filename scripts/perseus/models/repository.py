"""Write the Triton model repository of one scenario.

`write_tenant` makes `<root>/<tenant>/config.pbtxt` and `<root>/<tenant>/1/model.onnx` (model.pt2
for PyTorch, model.plan for TensorRT).
`model_config` says what stands in a config.pbtxt. The same repository is served by our
python-based backends (scripts/backends) and, unchanged, by the C++ backends of NVIDIA's container.
What the two do differently with it:

- OpenVINO computes in bf16 by default where the CPU has AMX. The C++ backend has a parameter
  for bf16 (`HINT_BF16: YES`) and none for fp32: there, "fp32" means OpenVINO's own default.
- The C++ OpenVINO backend fixes the batch axis at max_batch_size. Smaller batches are an error
  unless it may pad them (`ENABLE_BATCH_PADDING`), and then cost as much as full ones.
- Without --disable-auto-complete-config, a C++ backend turns dynamic batching on by itself for a
  tenant that has none (max_queue_delay_us=None) and a max_batch_size above 1.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from perseus.host.files import whole

Runtime = Literal["onnxruntime", "openvino", "pytorch", "tensorrt"]
Precision = Literal["fp32", "bf16", "fp16", "int8"]

MODEL_FILES: Final = {
    "onnxruntime": "1/model.onnx",
    "openvino": "1/model.onnx",
    "pytorch": "1/model.pt2",
    "tensorrt": "1/model.plan",
}
# The rate limiter's resource that tenants with a priority share, see model_config.
RESOURCE: Final = "cores"


class RepositoryError(ValueError):
    """A tenant or a folder that cannot be served; the message says what to change."""


@dataclass(frozen=True)
class TenantSpec:
    """One model as served in one scenario.

    name: the name Triton serves it under, of letters, digits, '_' and '-'.
    model: the name of the model in the study; not written, it explains error messages.
    runtime, precision: what executes it, and how. bf16 is OpenVINO's alone, on CPUs; fp16 is for
        GPUs, int8 for OpenVINO and TensorRT. Inputs and outputs are fp32 whatever the precision.
    gpus: as the server numbers them; none for a CPU.
    instances: copies of the model that may execute at the same time, on each of the GPUs.
    max_batch_size: at least 1.
    max_queue_delay_us: how long a request may wait for others to share its batch, in
        microseconds; None switches dynamic batching off.
    preferred_batch_sizes: batches that are sent without further waiting; needs dynamic batching.
    priority: share of the cores among tenants that have one: an instance of priority 1 gets twice
        as many turns as one of priority 2; see model_config.
    intra_op_threads: threads of each instance.
    """

    name: str
    model: str
    runtime: Runtime = "onnxruntime"
    precision: Precision = "fp32"
    instances: int = 1
    max_batch_size: int = 8
    max_queue_delay_us: int | None = None
    preferred_batch_sizes: tuple[int, ...] = ()
    priority: int | None = None
    intra_op_threads: int = 1
    gpus: tuple[int, ...] = ()


def write_tenant(
    root: Path, tenant: TenantSpec, siblings: Sequence[str], model: Path, check: Mapping[str, Any]
) -> None:
    """Write one tenant of the repository `root`: `config.pbtxt`, and a copy of the file `model`.

    siblings: names of all tenants of the scenario. Triton serves whatever lies in a repository, so
        what was written earlier for a tenant that is no longer among them is removed.
    check: the record of `export.export_model` (input_shape, classes).

    The model is copied, not linked: a link would share its time stamp with the export's output, and
    a workflow that touches one would find the other out of date.

    Raises RepositoryError for an unfit tenant, and for anything else found in `root`.
    """
    channels, height, width = check["input_shape"]
    config = model_config(tenant, (channels, height, width), check["classes"])
    for folder in _stale_tenants(root, {tenant.name, *siblings}):
        shutil.rmtree(folder)
    for name in {*MODEL_FILES.values()} - {MODEL_FILES[tenant.runtime]}:
        (root / tenant.name / name).unlink(missing_ok=True)  # of the runtime that it had before
    # The model first: a config.pbtxt stands only beside its model.
    with whole(root / tenant.name / MODEL_FILES[tenant.runtime]) as partial:
        shutil.copyfile(model, partial)
    with whole(root / tenant.name / "config.pbtxt") as partial:
        partial.write_text(text_format.MessageToString(config))


def model_config(
    tenant: TenantSpec, input_shape: tuple[int, int, int], classes: int
) -> pb.ModelConfig:
    """The configuration of `tenant`, whose model maps `input_shape` (channels, height, width) to
    `classes` outputs.

    A priority is written as the rate limiter's, with one unit of the resource "cores" per thread:
    it takes effect in a server run with `--rate-limit=execution_count`. The server's
    `--rate-limit-resource=cores:<n>` sets how many there are (default: the most that one instance
    needs, so that such tenants take turns).

    Raises RepositoryError for a tenant that Triton or its runtime would refuse.
    """
    _valid(tenant)
    config = pb.ModelConfig(
        name=tenant.name,
        # TensorRT's plans are a platform; the others are backends by the runtime's name.
        backend="" if tenant.runtime == "tensorrt" else tenant.runtime,
        platform="tensorrt_plan" if tenant.runtime == "tensorrt" else "",
        max_batch_size=tenant.max_batch_size,
        default_model_filename=Path(MODEL_FILES[tenant.runtime]).name,
        input=[pb.ModelInput(name="input", data_type=pb.TYPE_FP32, dims=input_shape)],
        output=[pb.ModelOutput(name="output", data_type=pb.TYPE_FP32, dims=[classes])],
    )
    # Always count and kind: Triton's defaults differ between backends.
    kinds = pb.ModelInstanceGroup.Kind
    group = config.instance_group.add(
        count=tenant.instances,
        kind=kinds.KIND_GPU if tenant.gpus else kinds.KIND_CPU,
        gpus=tenant.gpus,
    )
    if tenant.priority is not None:
        group.rate_limiter.priority = tenant.priority
        group.rate_limiter.resources.add(
            name=RESOURCE, **{"global": True}, count=tenant.intra_op_threads
        )
    if tenant.max_queue_delay_us is not None:
        config.dynamic_batching.max_queue_delay_microseconds = tenant.max_queue_delay_us
        config.dynamic_batching.preferred_batch_size.extend(tenant.preferred_batch_sizes)
    # Sorted: protobuf's map has no order of its own, and the text must not vary.
    for key, value in sorted(_parameters(tenant).items()):
        config.parameters[key].string_value = value
    return config


def _parameters(tenant: TenantSpec) -> dict[str, str]:
    """Parameters of the runtime, by the names that the C++ backends read."""
    if tenant.runtime == "tensorrt":
        return {}
    if tenant.runtime == "pytorch":
        parameters = {"intra_op_thread_count": str(tenant.intra_op_threads)}
        if tenant.precision == "fp16":
            parameters["precision"] = "fp16"
        if tenant.gpus:
            sizes = captured_sizes(tenant.max_batch_size, tenant.preferred_batch_sizes)
            parameters["captured_batch_sizes"] = ",".join(map(str, sizes))
        return parameters
    if tenant.runtime == "onnxruntime":
        return {
            "intra_op_thread_count": str(tenant.intra_op_threads),
            "inter_op_thread_count": "1",
        }
    # The C++ backend compiles a model once for all instances and splits its threads over the
    # streams: one stream per instance, and the threads of all of them together.
    parameters = {
        "NUM_STREAMS": str(tenant.instances),
        "INFERENCE_NUM_THREADS": str(tenant.instances * tenant.intra_op_threads),
    }
    if tenant.precision == "bf16":
        parameters["HINT_BF16"] = "YES"  # the only value that the backend accepts
    if tenant.max_batch_size > 1:
        parameters["ENABLE_BATCH_PADDING"] = "YES"
    return parameters


def captured_sizes(largest: int, preferred: Sequence[int] = ()) -> list[int]:
    """Batch sizes that are worth a CUDA graph: the powers of two, the preferred and the largest.

    A batch between two of them is filled up to the next, so that it computes at most twice itself.
    """
    powers = {2**i for i in range(largest.bit_length()) if 2**i <= largest}
    return sorted({*powers, *preferred, largest})


def _valid(tenant: TenantSpec) -> TenantSpec:
    problem = next(_problems(tenant), None)
    if problem:
        raise RepositoryError(f"tenant {tenant.name!r} of model {tenant.model!r}: {problem}")
    return tenant


def _problems(tenant: TenantSpec) -> Iterator[str]:
    if not re.fullmatch(r"[A-Za-z0-9_-]+", tenant.name):
        yield "its name may hold letters, digits, '_' and '-' only: it becomes a folder and a URL"
    if tenant.runtime not in get_args(Runtime):
        yield f"runtime {tenant.runtime!r} is not one of {', '.join(get_args(Runtime))}"
    if tenant.precision not in get_args(Precision):
        yield f"precision {tenant.precision!r} is not one of {', '.join(get_args(Precision))}"
    if tenant.precision == "bf16" and tenant.runtime != "openvino":
        yield f"{tenant.runtime} does not compute in bf16 on CPUs: use fp32, or runtime openvino"
    if tenant.precision == "fp16" and tenant.runtime == "openvino":
        yield "openvino does not compute in fp16 on CPUs: use fp32, bf16 or int8, or a GPU"
    if tenant.precision == "int8" and tenant.runtime not in ("openvino", "tensorrt"):
        yield f"{tenant.runtime} gains nothing from int8: use openvino, or tensorrt on a GPU"
    if tenant.runtime == "openvino" and tenant.gpus:
        yield "openvino serves on CPUs alone: take another runtime for a GPU"
    if tenant.runtime == "tensorrt" and not tenant.gpus:
        yield "tensorrt serves on GPUs alone: name some, or take another runtime"
    for name in ("instances", "max_batch_size", "intra_op_threads", "priority"):
        value = getattr(tenant, name)
        if value is not None and value < 1:
            yield f"{name} is {value}, but must be at least 1"
    if tenant.max_queue_delay_us is None:
        if tenant.preferred_batch_sizes:
            yield "preferred_batch_sizes need dynamic batching: set max_queue_delay_us (0 will do)"
    elif tenant.max_queue_delay_us < 0:
        yield f"max_queue_delay_us is {tenant.max_queue_delay_us}, but must not be negative"
    for size in tenant.preferred_batch_sizes:
        if not 1 <= size <= tenant.max_batch_size:
            yield f"preferred batch size {size} is not between 1 and {tenant.max_batch_size}"


def _stale_tenants(root: Path, names: Set[str]) -> list[Path]:
    """Folders that an earlier call wrote for tenants not in `names`."""
    stale = []
    for path in sorted(root.iterdir()) if root.is_dir() else ():
        if path.name in names or path.name.startswith("."):
            continue
        files = {str(p.relative_to(path)) for p in path.rglob("*") if not p.is_dir()}
        ours = {"config.pbtxt", *MODEL_FILES.values()}
        if path.is_symlink() or not path.is_dir() or not files <= ours:
            raise RepositoryError(
                f"{path} is not part of this scenario, and Triton would try to serve it: "
                "move it away, or choose another folder for the repository"
            )
        stale.append(path)
    return stale
