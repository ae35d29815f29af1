"""Read the descriptions of models from a server that reports only their metadata (Open Inference
Protocol), and not their configuration.

The metadata does not say whether a model accepts batches. Perseus assumes that the model accepts
batches if the first dimension of each of its tensors has a variable size.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from perseus.models.tensors import OPEN, TensorSpec
from perseus.serving.failures import ServerError
from perseus.serving.open_inference import (
    ModelMetadata,
    TensorMetadata,
    model_metadata,
    require_ready,
)
from perseus.serving.running_server import RunningServer
from perseus.serving.served_models import ModelOnServer, closed, tensor_problems
from perseus.study.tasks.measure import ServedModel

Shapes = Mapping[str, tuple[int, ...]]


def read_open_model(
    server: RunningServer, wanted: ServedModel, request_batch_size: int
) -> ModelOnServer:
    """Return the model `wanted` as the server's metadata describes it.

    Each request to the model will contain `request_batch_size` examples. The metadata does not say
    how many examples a request may contain, or whether the server forms batches of several
    requests. Therefore `max_batch_size` in the result is `request_batch_size` (0 if the model
    accepts no batches), and `dynamic_batching` is None.

    Raises ServerError if the server does not have the model, or if the model is not ready. Also
    raises ServerError if Perseus cannot measure the model, for example because a tensor is not
    numeric.
    """
    told = model_metadata(server, wanted.name)
    require_ready(server, wanted.name)
    inputs, outputs = told.inputs or (), told.outputs or ()
    has_batches = _has_batches((*inputs, *outputs), wanted.shape)
    found = ModelOnServer(
        name=told.name,
        version=max(told.versions or (), key=lambda number: (len(number), number), default=""),
        backend=told.platform,
        config_sha256=_digest(told),
        inputs=tuple(
            TensorSpec(each.name, each.datatype, closed(dims, wanted.shape.get(each.name)))
            for each, dims in zip(inputs, _dims(inputs, has_batches), strict=True)
        ),
        outputs=tuple(
            TensorSpec(each.name, each.datatype, dims)
            for each, dims in zip(outputs, _dims(outputs, has_batches), strict=True)
        ),
        max_batch_size=request_batch_size if has_batches else 0,
        dynamic_batching=None,
    )
    declared = {
        each.name: dims for each, dims in zip(inputs, _dims(inputs, has_batches), strict=True)
    }
    problems = [*_missing_tensors(inputs, outputs), *tensor_problems(found, wanted.shape, declared)]
    if request_batch_size > 1 and not has_batches:
        problems.append(
            f"the model accepts no batches, but request_batch_size is {request_batch_size}: set"
            " request_batch_size: 1"
        )
    if problems:
        raise ServerError(
            f"{wanted.name!r} of the server at {server.asked_address} cannot be measured:"
            f" {'; '.join(problems)}"
        )
    return found


def _has_batches(tensors: Sequence[TensorMetadata], shape: Shapes) -> bool:
    """Return whether the first dimension of each tensor of a model is the batch dimension.

    The size of a batch dimension is variable, and the study does not set this size in `shape`.
    """
    return bool(tensors) and all(
        each.shape[:1] == (OPEN,) and len(shape.get(each.name, ())) < len(each.shape)
        for each in tensors
    )


def _dims(tensors: Sequence[TensorMetadata], has_batches: bool) -> list[tuple[int, ...]]:
    return [each.shape[1:] if has_batches else each.shape for each in tensors]


def _digest(of: ModelMetadata) -> str:
    return hashlib.sha256(of.model_dump_json().encode()).hexdigest()


def _missing_tensors(
    inputs: Sequence[TensorMetadata], outputs: Sequence[TensorMetadata]
) -> Iterator[str]:
    for what, tensors in (("input", inputs), ("output", outputs)):
        if not tensors:
            yield (
                f"its metadata names no {what}s (add the {what}s to the settings of the model on"
                " the server)"
            )
