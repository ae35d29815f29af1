"""Write the Triton model repository of one scenario (models that share a server).

For each tenant, `write_repository` writes `<root>/<tenant>/config.pbtxt`, the model file in
`<root>/<tenant>/1/`, and the reference responses. The function `model_config` makes the content of
config.pbtxt. The package `runtimes` has one module for each runtime, which sets the parameters of
the runtime in config.pbtxt. The module `ensemble` writes the preprocessing model of a tenant whose
requests are image files.

The Python backends of Perseus (scripts/backends) and the C++ backends in the containers of NVIDIA
can serve this repository. Perseus starts the containers with --disable-auto-complete-config.
Without this option, a C++ backend would enable dynamic batching for each tenant with a
max_batch_size above 1, even if the study does not configure dynamic batching for this tenant.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, get_args

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from perseus.host.files import whole
from perseus.models.export_errors import require_model, write_export_error
from perseus.models.rate_limiter import RESOURCE
from perseus.models.runtimes import parameters_of
from perseus.models.tensors import ModelTensors, TensorSpec
from perseus.study.model import Precision
from perseus.study.runtimes import RUNTIMES, Runtime
from perseus.study.tasks.repository import RepositoryTask, ServedTenant
from perseus.study.triton_models import CONFIG, answers_file, tenant_of

T = TypeVar("T", pb.ModelInput, pb.ModelOutput)


class RepositoryError(ValueError):
    """Error: Triton cannot serve a tenant. The message says which setting to change."""


@dataclass(frozen=True)
class ModelFiles:
    """The files from which Perseus makes the model repository of one tenant.

    `check` is the export record (check.json), and `reference` contains the reference responses.
    """

    model: Path
    check: Path
    reference: Path


def write_repository(
    root: Path, task: RepositoryTask, model_files: Sequence[ModelFiles], *, is_variant: bool
) -> None:
    """Write the Triton model repository of a scenario into the folder `root`, which must not exist.

    `model_files` has the files of each tenant, in the order of the tenants in the task.
    `is_variant` is true if the scenario is one setting of a grid, or belongs to an experiment
    `catalogue`.

    Perseus cannot serve a model if its export failed, or if the model does not support the batches
    that the study configures. If `is_variant` is true, the repository contains an error message in
    place of such a model. If `is_variant` is false, the function raises NoModelError for a failed
    export, and RepositoryError for a model that does not support the configured batches.

    Also raises RepositoryError for a tenant with invalid settings.
    """
    for tenant, files in zip(task.tenants, model_files, strict=True):
        check = json.loads(files.check.read_text())
        unfit = unfit_batches(tenant, check)
        if not is_variant:
            require_model(files.model)
            if unfit:
                raise RepositoryError(unfit)
        write_tenant(root, tenant, files.model, check)
        if unfit:
            write_export_error(model_path(root, tenant.name, tenant.model_file), unfit)
        if tenant.ensemble:  # import here, so that other jobs do not depend on this module
            before = import_module("perseus.models.ensemble")
            before.write_ensemble(root, tenant.ensemble, files.reference, check)
        with whole(root / answers_file(tenant_of(tenant.name))) as partial:
            shutil.copyfile(files.reference, partial)


def write_tenant(root: Path, tenant: ServedTenant, model: Path, check: Mapping[str, Any]) -> None:
    """Write the Triton model of one tenant: `config.pbtxt`, and a copy of the file `model`.

    `check` is the export record of the model (the content of check.json). Only the keys inputs,
    outputs and has_batches are necessary. Raises RepositoryError for invalid settings.
    """
    config = model_config(tenant, ModelTensors.of(check))
    write_model(root, config, tenant.model_file, model)


def unfit_batches(tenant: ServedTenant, check: Mapping[str, Any]) -> str:
    """Return an error message if the model of a tenant does not support the configured batches.

    Otherwise, the result is empty. `check` is the export record of the model, as in `write_tenant`.
    """
    tensors = ModelTensors.of(check)
    if tensors.has_batches:
        return ""
    sizes = {each.dims[0] if each.dims else 1 for each in tensors.inputs}
    size = sizes.pop() if len(sizes) == 1 else 1
    if tenant.max_queue_delay_us is None and tenant.request_batch_size in (1, size):
        return ""
    keys = "leave dynamic_batching and request_batch_size out"
    also = f", or set request_batch_size: {size}, the model's fixed batch size" if size > 1 else ""
    return (
        f"model {tenant.model!r} of tenant {tenant.name!r} does not support batches: {keys}{also}"
    )


def write_model(root: Path, config: pb.ModelConfig, file: str, source: Path) -> None:
    """Write one Triton model into the repository `root`. The model file is a copy of `source`.

    `file` is the name of the copy. The function makes no link: through a link, a later export would
    change the model, and a hard link cannot point to another disk.
    """
    # Write the model file first, so that no config.pbtxt exists without its model.
    with whole(model_path(root, config.name, file)) as partial:
        shutil.copyfile(source, partial)
    with whole(root / config.name / CONFIG) as partial:
        partial.write_text(text_format.MessageToString(config))


def model_path(root: Path, model: str, file: str) -> Path:
    """Return the path of a model file in a repository. Perseus writes only version 1 of a model."""
    return root / model / "1" / file


def model_config(tenant: ServedTenant, tensors: ModelTensors) -> pb.ModelConfig:
    """Return the Triton configuration (config.pbtxt) of a tenant.

    `tensors` has the inputs and outputs of the tenant's model.

    The priority of a tenant becomes its priority in Triton's rate limiter. The rate limiter is
    active only if the server runs with `--rate-limit=execution_count`. An instance of a tenant with
    a priority needs one unit of the resource "cores" per thread. The server must set the number of
    units with `--rate-limit-resource=cores:<n>`. Without this option, the server has only as many
    units as the largest instance needs, and never executes two such instances at the same time.

    Raises RepositoryError for settings that Triton or the runtime rejects.
    """
    if problem := next(_problems(tenant), None):
        raise RepositoryError(f"tenant {tenant.name!r} of model {tenant.model!r}: {problem}")
    platform = RUNTIMES[tenant.runtime].platform
    config = pb.ModelConfig(
        name=tenant.name,
        backend="" if platform else tenant.runtime,
        platform=platform,
        max_batch_size=tenant.max_batch_size if tensors.has_batches else 0,
        default_model_filename=tenant.model_file,
        input=[tensor(pb.ModelInput, each) for each in tensors.inputs],
        output=[tensor(pb.ModelOutput, each) for each in tensors.outputs],
    )
    # Always state `count` and `kind`, since their defaults differ between the backends of Triton.
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
    # Sort the parameters, so that the text is always the same: a map in protobuf has no order.
    for key, value in sorted(parameters_of(tenant).items()):
        config.parameters[key].string_value = value
    return config


def tensor(kind: Callable[..., T], of: TensorSpec) -> T:
    """Return the Triton configuration of an input or output.

    Triton does not support a tensor whose only dimension is the batch. In requests and responses,
    such a tensor has a second dimension of size 1. Because of the setting `reshape`, Triton passes
    an input to the model without the second dimension, and adds the second dimension to an output.
    """
    datatype = pb.DataType.Value(f"TYPE_{of.datatype}")
    if of.dims:
        return kind(name=of.name, data_type=datatype, dims=of.dims)
    return kind(name=of.name, data_type=datatype, dims=[1], reshape=pb.ModelTensorReshape())


def _problems(tenant: ServedTenant) -> Iterator[str]:
    if not re.fullmatch(r"[A-Za-z0-9_~-]+(\.network)?", tenant.name):
        yield "in its name, only letters, digits and the characters _, ~ and - are permitted"
    if tenant.precision not in get_args(Precision):
        yield f"precision {tenant.precision!r} is not one of {', '.join(get_args(Precision))}"
    elif tenant.runtime not in RUNTIMES:
        yield f"runtime {tenant.runtime!r} is not one of {', '.join(RUNTIMES)}"
    else:
        yield from _runtime_problems(tenant, RUNTIMES[tenant.runtime])
    for name in ("instances", "max_batch_size", "intra_op_threads", "priority"):
        value = getattr(tenant, name)
        if value is not None and value < 1:
            yield f"{name} is {value}, but must be at least 1"
    if tenant.max_queue_delay_us is None:
        if tenant.preferred_batch_sizes:
            yield (
                "preferred_batch_sizes need dynamic batching: set max_queue_delay_us, for example"
                " to 0"
            )
    elif tenant.max_queue_delay_us < 0:
        yield f"max_queue_delay_us is {tenant.max_queue_delay_us}, but must not be negative"
    for size in tenant.preferred_batch_sizes:
        if not 1 <= size <= tenant.max_batch_size:
            yield (
                f"preferred batch size {size} is not between 1 and {tenant.max_batch_size}, the"
                " max_batch_size"
            )


def _runtime_problems(tenant: ServedTenant, runtime: Runtime) -> Iterator[str]:
    if ("gpu" if tenant.gpus else "cpu") not in runtime.precisions:
        served = " and ".join(f"{device.upper()}s" for device in runtime.precisions)
        yield f"{tenant.runtime} runs on {served} only: choose another runtime or device"
    if tenant.precision not in runtime.all_precisions:
        able = [name for name, each in RUNTIMES.items() if tenant.precision in each.all_precisions]
        yield (
            f"{tenant.runtime} does not compute in {tenant.precision}: use the runtime"
            f" {' or '.join(able)}"
        )
