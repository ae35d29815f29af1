"""Read the descriptions of models that a remote server already has, and check whether Perseus can
measure these models.

If Perseus cannot measure a model, the error message states all reasons.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from google.protobuf import json_format
from tritonclient.grpc import model_config_pb2 as pb

from perseus.models.tensors import DTYPES, OPEN, TensorSpec, closings
from perseus.serving.failures import ServerError
from perseus.serving.model_control import READY, Control
from perseus.serving.response_cache import cached_models
from perseus.serving.running_server import RunningServer
from perseus.study.hints import did_you_mean
from perseus.study.tasks.measure import ServedModel

MAX_NAMED: Final = 20


@dataclass(frozen=True)
class ModelOnServer:
    """A model as its server describes it.

    `max_batch_size` is 0 if the model has no batch dimension. `version` is the highest version,
    which responds to the requests of Perseus. `config_sha256` is the hash of the configuration, or
    of the metadata if the server reports no configuration. `dynamic_batching` says whether the
    server forms batches of several requests; None if unknown.
    """

    name: str
    version: str
    backend: str
    config_sha256: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    max_batch_size: int
    dynamic_batching: bool | None


def read_served_model(
    server: RunningServer, wanted: ServedModel, request_batch_size: int
) -> ModelOnServer:
    """Return the model `wanted` as its configuration on the server describes it.

    Each request to the model will contain `request_batch_size` examples. Raises ServerError if the
    server is unreachable or does not have the model, or if the model is not ready. Also raises
    ServerError if Perseus cannot measure the model, for example because a request may get several
    responses or a tensor is not numeric.
    """
    with Control(server) as control:
        states = control.states(wanted.name)
        if wanted.name not in states:
            raise ServerError(_unknown(server, wanted.name, sorted(states)))
        if (state := states[wanted.name]) != READY:
            raise ServerError(
                f"the server at {server.grpc_address} has the model {wanted.name!r}, but the model"
                f" is not ready ({state}). Perseus does not load this model: load it on the server."
            )
        config, versions = control.config(wanted.name), control.versions(wanted.name)
        cached = [
            f"{name!r} has a response_cache, which answers instead of the model: set response_cache"
            f" {{ enable: false }} in the config.pbtxt of the model, and load the model again"
            for name in cached_models(control.config, config)
        ]
    found = ModelOnServer(
        name=wanted.name,
        version=max(versions, key=lambda number: (len(number), number), default=""),
        backend=config.backend or config.platform,
        config_sha256=_digest(config),
        inputs=_inputs(config, wanted.shape),
        outputs=tuple(_spec(each) for each in config.output),
        max_batch_size=config.max_batch_size,
        dynamic_batching=config.HasField("dynamic_batching"),
    )
    declared = {each.name: tuple(each.dims) for each in config.input}
    problems = [*_of_kind(config), *cached, *tensor_problems(found, wanted.shape, declared)]
    if request_batch_size > max(1, most := found.max_batch_size):
        takes = f"batches of at most {most}" if most else "no batches"
        problems.append(
            f"the model accepts {takes}, but request_batch_size is {request_batch_size}: set a"
            " smaller request_batch_size"
        )
    if problems:
        raise ServerError(
            f"{wanted.name!r} of the server at {server.grpc_address} cannot be measured:"
            f" {'; '.join(problems)}"
        )
    return found


def _unknown(server: RunningServer, name: str, known: Sequence[str]) -> str:
    has = ", ".join(known[:MAX_NAMED]) or "none"
    more = f" and {len(known) - MAX_NAMED} more" if len(known) > MAX_NAMED else ""
    return (
        f"the server at {server.grpc_address} has no model {name!r}{did_you_mean(name, known)}."
        f" Its models: {has}{more}"
    )


def _digest(config: pb.ModelConfig) -> str:
    """Return a hash of the configuration. The order of the fields does not change the hash."""
    plain = json_format.MessageToDict(config, preserving_proto_field_name=True)
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _inputs(config: pb.ModelConfig, shape: Mapping[str, tuple[int, ...]]) -> tuple[TensorSpec, ...]:
    """Return the inputs that Perseus sends, with the shapes that the study sets.

    Perseus sends all required inputs, and each optional input for which the study sets a shape.
    """
    specs = [_spec(each) for each in config.input if not each.optional or each.name in shape]
    return tuple(replace(each, dims=closed(each.dims, shape.get(each.name))) for each in specs)


def _spec(of: Any) -> TensorSpec:
    datatype = pb.DataType.Name(of.data_type).removeprefix("TYPE_")
    return TensorSpec(of.name, datatype.replace("STRING", "BYTES"), tuple(of.dims))


def _of_kind(config: pb.ModelConfig) -> Iterator[str]:
    if config.model_transaction_policy.decoupled:
        yield "the model is decoupled: a request may have any number of responses"
    if config.HasField("sequence_batching"):
        yield "the model keeps a state from one request to the next (sequence batching)"
    for what, tensors in (("inputs", config.input), ("outputs", config.output)):
        if not tensors:
            yield f"the configuration of the model names no {what}"


def tensor_problems(
    found: ModelOnServer,
    shape: Mapping[str, tuple[int, ...]],
    declared: Mapping[str, tuple[int, ...]],
) -> Iterator[str]:
    """Yield the reasons why Perseus cannot send or read the tensors of a model.

    `shape` contains the sizes that the study sets. `declared` contains the shape of each input as
    the server reports it.
    """
    for what, specs in (("input", found.inputs), ("output", found.outputs)):
        for each in specs:
            if each.datatype not in DTYPES:
                yield (
                    f"its {what} {each.name!r} has the type {each.datatype}, but Perseus supports"
                    f" only numbers ({', '.join(DTYPES)})"
                )
    for name in shape:
        if name not in declared:
            hint = did_you_mean(name, list(declared)) or f" (the inputs are {', '.join(declared)})"
            yield f"shape: {name!r} is not an input of the model{hint}"
    for each in found.inputs:
        asked, given = declared[each.name], list(each.dims)
        if OPEN in given:
            yield (
                f"its input {each.name!r} has the shape {list(asked)}, in which -1 is a variable"
                f" size: to set this size, write shape: {{{each.name}: [...]}} under the model"
            )
        elif not fits(given, asked):
            yield (
                f"shape: {each.name!r} is {given}, but the shape of this input on the server is"
                f" {list(asked)}"
            )


def closed(dims: tuple[int, ...], given: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the shape `dims` of a tensor with the sizes `given` in place of its variable sizes.

    The study sets `given`: either all sizes of the tensor, or only its variable sizes. If `dims`
    cannot have the sizes `given`, the function returns `given`, and `tensor_problems` reports the
    difference.
    """
    return dims if given is None else next(iter(closings(dims, given)), given)


def fits(given: Sequence[int], asked: Sequence[int]) -> bool:
    """Return whether the shape `given` matches the shape `asked`. In `asked`, -1 stands for any
    size."""
    return len(given) == len(asked) and all(
        size in (OPEN, mine) for mine, size in zip(given, asked, strict=True)
    )
