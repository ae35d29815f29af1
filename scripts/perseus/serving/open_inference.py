"""Ask a server for metadata and readiness with the Open Inference Protocol, over gRPC or HTTP.

The protocol is described in https://github.com/kserve/open-inference-protocol.
"""

from __future__ import annotations

from typing import Any, TypeVar

from google.protobuf import json_format
from pydantic import BaseModel, ConfigDict, ValidationError
from tritonclient.utils import InferenceServerException

from perseus.serving.failures import ServerError
from perseus.serving.remote_failures import explained
from perseus.serving.running_server import RunningServer

ANSWER_S = 10.0


class _Answer(BaseModel):
    """A response with metadata. Perseus ignores keys that are not in the protocol, because servers
    may add their own keys."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ServerMetadata(_Answer):
    """The metadata of a server.

    `extensions` contains the names of the protocol extensions that the server supports, for example
    `statistics`.
    """

    name: str
    version: str = ""
    extensions: tuple[str, ...] = ()


class TensorMetadata(_Answer):
    """The metadata of a tensor. `shape` is the shape of the whole tensor, including the batch
    dimension; -1 stands for a variable size."""

    name: str
    datatype: str
    shape: tuple[int, ...] = ()


class ModelMetadata(_Answer):
    """The metadata of a model. A server may omit everything except the name."""

    name: str
    versions: tuple[str, ...] | None = ()
    platform: str = ""
    inputs: tuple[TensorMetadata, ...] | None = ()
    outputs: tuple[TensorMetadata, ...] | None = ()


A = TypeVar("A", bound=_Answer)


def server_metadata(server: RunningServer) -> ServerMetadata:
    """Return the server's metadata. Raises ServerError if the server does not respond with
    metadata."""
    return _asked(server, ServerMetadata, "get_server_metadata", "/v2")


def model_metadata(server: RunningServer, model: str) -> ModelMetadata:
    """Return the model's metadata. Raises ServerError if the server does not respond with
    metadata."""
    return _asked(server, ModelMetadata, "get_model_metadata", f"/v2/models/{model}", model)


def require_ready(server: RunningServer, model: str) -> None:
    """Raise ServerError if a model is not ready, if the server responds with an error, or if the
    server does not respond."""
    if server.protocol == "http":
        _get(server, f"/v2/models/{model}/ready")
    elif not _call(server, "is_model_ready", model):
        raise ServerError(f"the server at {server.grpc_address} says that {model!r} is not ready")


def is_live(server: RunningServer, timeout_s: float = ANSWER_S) -> bool:
    """Return whether the server responds to a health request and reports that it is live."""
    try:
        if server.protocol == "http":
            _get(server, "/v2/health/live", timeout_s)
            return True
        return bool(_call(server, "is_server_live", timeout_s=timeout_s))
    except ServerError:
        return False


def _asked(server: RunningServer, kind: type[A], method: str, path: str, *arguments: str) -> A:
    try:
        if server.protocol == "http":
            return kind.model_validate_json(_get(server, path))
        answer = json_format.MessageToDict(_call(server, method, *arguments))
        return kind.model_validate(answer)
    except ValidationError as error:
        first = error.errors()[0]
        fault = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise ServerError(
            f"the server at {server.asked_address} does not follow the Open Inference Protocol: its"
            f" response is invalid ({fault})"
        ) from None


def _get(server: RunningServer, path: str, timeout_s: float = ANSWER_S) -> bytes:
    url = f"{server.access.scheme}://{server.http_address}{path}"
    try:
        return server.access.get(url, timeout_s)
    except OSError as error:
        raise explained(error, url, server.access) from None


def _call(server: RunningServer, method: str, *arguments: str, timeout_s: float = ANSWER_S) -> Any:
    try:
        with server.access.grpc_client(server.grpc_address) as client:
            return getattr(client, method)(
                *arguments, headers=server.access.values(), client_timeout=timeout_s
            )
    except InferenceServerException as error:
        raise explained(error, server.grpc_address, server.access) from None
