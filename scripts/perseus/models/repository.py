"""Write the Triton model repository of one scenario.

`write_tenant` makes `<root>/<tenant>/config.pbtxt` and `<root>/<tenant>/1/<the model's file>`; what
stands before the network of a tenant that gets pictures is written by `ensemble`.
`model_config` says what stands in a config.pbtxt; what is the runtime's own comes from the module
of its name in `runtimes`. The same repository is served by our python-based backends
(scripts/backends) and, unchanged, by the C++ backends of NVIDIA's container. But without
--disable-auto-complete-config, a C++ backend turns dynamic batching on by itself for a tenant that
has none (max_queue_delay_us=None) and a max_batch_size above 1.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, get_args

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from perseus.host.files import becomes, whole
from perseus.models.rate_limiter import RESOURCE
from perseus.models.runtimes import parameters_of
from perseus.study.model import Precision
from perseus.study.runtimes import RUNTIMES, Runtime
from perseus.study.tasks.repository import ServedTenant
from perseus.study.triton_models import CONFIG, ENSEMBLE_FILE, PREPROCESS_FILE


class RepositoryError(ValueError):
    """A tenant or a folder that cannot be served; the message says what to change."""


def write_tenant(
    root: Path, tenant: ServedTenant, siblings: Sequence[str], model: Path, check: Mapping[str, Any]
) -> None:
    """Write one tenant of the repository `root`: `config.pbtxt`, and a copy of the file `model`.

    siblings: as of `write_model`.
    check: what the export wrote of the model, check.json (input_shape, classes).

    Raises RepositoryError for an unfit tenant, and for anything else found in `root`.
    """
    channels, height, width = check["input_shape"]
    config = model_config(tenant, (channels, height, width), check["classes"])
    write_model(root, config, tenant.model_file, model, siblings)


def unfit_batches(tenant: ServedTenant, check: Mapping[str, Any]) -> str:
    """Why Triton may give a network batches of a size that it does not take; empty if it may not.

    check: as of `write_tenant` (fixed_batch).
    """
    fixed, sizes = check.get("fixed_batch"), {tenant.own_request_batch_size, tenant.max_batch_size}
    if fixed is None or sizes == {fixed}:
        return ""
    return (
        f"the ONNX file of model {tenant.model!r} takes batches of {fixed} only, and tenant"
        f" {tenant.name!r} asks for {' to '.join(map(str, sorted(filter(None, sizes))))}: export it"
        f" with a dynamic batch axis, or give it max_batch_size: {fixed} and"
        f" request_batch_size: {fixed}"
    )


def write_model(
    root: Path, config: pb.ModelConfig, file: str, source: Path, siblings: Sequence[str]
) -> None:
    """Write one Triton model of the repository `root`, whose `file` is a copy of `source`.

    siblings: names of all Triton models of the scenario. Triton serves whatever lies in a
        repository, so what was written earlier for one that is no longer among them is removed.

    The file is copied, not linked: a link would share its time stamp with the export's output, and
    a workflow that touches one would find the other out of date.

    Raises RepositoryError for anything else found in `root`.
    """
    for folder in _stale_models(root, {config.name, *siblings}):
        shutil.rmtree(folder)
    version = root / config.name / "1"
    for name in _version_files() - {file}:
        (version / name).unlink(missing_ok=True)  # of what it was before
    # The file first: a config.pbtxt stands only beside its model.
    with whole(version / file) as partial:
        shutil.copyfile(source, partial)
    with whole(root / config.name / CONFIG) as partial:
        partial.write_text(text_format.MessageToString(config))


def model_config(
    tenant: ServedTenant, input_shape: tuple[int, int, int], classes: int
) -> pb.ModelConfig:
    """The configuration of `tenant`, whose model maps `input_shape` (channels, height, width) to
    `classes` outputs.

    A priority is written as the rate limiter's, with one unit of the resource "cores" per thread:
    it takes effect in a server run with `--rate-limit=execution_count`. The server's
    `--rate-limit-resource=cores:<n>` sets how many there are (default: the most that one instance
    needs, so that such tenants take turns).

    Raises RepositoryError for a tenant that Triton or its runtime would refuse.
    """
    if problem := next(_problems(tenant), None):
        raise RepositoryError(f"tenant {tenant.name!r} of model {tenant.model!r}: {problem}")
    platform = RUNTIMES[tenant.runtime].platform
    config = pb.ModelConfig(
        name=tenant.name,
        backend="" if platform else tenant.runtime,
        platform=platform,
        max_batch_size=tenant.max_batch_size,
        default_model_filename=tenant.model_file,
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
    for key, value in sorted(parameters_of(tenant).items()):
        config.parameters[key].string_value = value
    return config


def _problems(tenant: ServedTenant) -> Iterator[str]:
    if not re.fullmatch(r"[A-Za-z0-9_~-]+(\.network)?", tenant.name):
        yield "its name may hold letters, digits and '_~-' only: it becomes a folder and a URL"
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
            yield "preferred_batch_sizes need dynamic batching: set max_queue_delay_us (0 will do)"
    elif tenant.max_queue_delay_us < 0:
        yield f"max_queue_delay_us is {tenant.max_queue_delay_us}, but must not be negative"
    for size in tenant.preferred_batch_sizes:
        if not 1 <= size <= tenant.max_batch_size:
            yield f"preferred batch size {size} is not between 1 and {tenant.max_batch_size}"


def _runtime_problems(tenant: ServedTenant, runtime: Runtime) -> Iterator[str]:
    if ("gpu" if tenant.gpus else "cpu") not in runtime.precisions:
        served = " and ".join(f"{device.upper()}s" for device in runtime.precisions)
        yield f"{tenant.runtime} serves on {served} alone: take another runtime or device"
    if tenant.precision not in runtime.all_precisions:
        able = [name for name, each in RUNTIMES.items() if tenant.precision in each.all_precisions]
        yield f"{tenant.runtime} does not compute in {tenant.precision}: take {' or '.join(able)}"


def _version_files() -> set[str]:
    """All that may lie in the version folder of a Triton model."""
    return {ENSEMBLE_FILE, PREPROCESS_FILE, *(each.model_file for each in RUNTIMES.values())}


def _stale_models(root: Path, names: Set[str]) -> list[Path]:
    """Folders that an earlier call wrote for Triton models not in `names`, if only in part."""
    stale = []
    for path in sorted(root.iterdir()) if root.is_dir() else ():
        if path.name in names or path.name.startswith("."):
            continue
        files = {str(becomes(p).relative_to(path)) for p in path.rglob("*") if not p.is_dir()}
        ours = {CONFIG, *(f"1/{name}" for name in _version_files())}
        if path.is_symlink() or not path.is_dir() or not files <= ours:
            raise RepositoryError(
                f"{path} is not part of this scenario, and Triton would try to serve it: "
                "move it away, or choose another folder for the repository"
            )
        stale.append(path)
    return stale
