"""Push models to a remote Triton (load models that are not on its disk), and unload the pushed
models.

The configuration of each pushed model names the measurement that pushed the model. If a measurement
is killed, its models stay on the server. The next measurement from the same host finds and unloads
them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf import json_format, text_format
from tritonclient.grpc import model_config_pb2 as pb
from tritonclient.utils import InferenceServerException

from perseus.host.identity import identity
from perseus.host.orphans import names_of_dead_owners
from perseus.serving.failures import ServerError
from perseus.serving.remote_failures import explained
from perseus.serving.running_server import RunningServer

MARK = "perseus"
"""Name of a parameter in the configuration of each pushed model. The value of the parameter is the
owner of the model: a name of the measuring process, a space, and the study and scenario."""
READY = "READY"
ANSWER_S = 10.0
LOAD_S = 300.0
UNLOAD_S = 20.0
_POLL_S = 0.1


@dataclass(frozen=True)
class PushedModel:
    """A model to push: its files, and its configuration with the owner (parameter MARK)."""

    config: pb.ModelConfig
    files: dict[str, bytes]
    """Content of each file, by its path in the model's folder."""

    @property
    def megabytes(self) -> float:
        return sum(map(len, self.files.values())) / 1e6


def read_models(repository: Path, owner: str) -> list[PushedModel]:
    """Return all models of a model repository. Each configuration names `owner` (parameter MARK).

    Raises ServerError if the repository contains no models.
    """
    models: list[PushedModel] = []
    for path in sorted(repository.glob("*/config.pbtxt")):
        config = text_format.Parse(path.read_text(), pb.ModelConfig())
        config.parameters[MARK].string_value = owner
        folder = path.parent
        files = {str(f.relative_to(folder)): f.read_bytes() for f in folder.glob("1/*")}
        models.append(PushedModel(config, files))
    if not models:
        raise ServerError(f"the model repository {repository} has no models; build it first.")
    return models


class Control:
    """Load and unload models of a remote Triton.

    If a call to the server fails, all methods except `unload` and `require_own` raise ServerError.
    """

    def __init__(self, server: RunningServer) -> None:
        self._server, self._access = server, server.access
        self._client = server.access.grpc_client(server.grpc_address)

    def __enter__(self) -> Control:
        return self

    def __exit__(self, *exc: object) -> None:
        self._client.close()

    def _call(self, method: str, *arguments: Any, timeout_s: float = ANSWER_S, **more: Any) -> Any:
        try:
            return getattr(self._client, method)(
                *arguments, headers=self._access.values(), client_timeout=timeout_s, **more
            )
        except InferenceServerException as error:
            raise explained(error, self._server.grpc_address, self._access) from None

    def check_http(self) -> None:
        """Raise ServerError if the server is unreachable over HTTP or rejects the headers.

        Perseus reads the server's statistics over HTTP.
        """
        url = f"{self._access.scheme}://{self._server.http_address}/v2/health/live"
        try:
            self._access.get(url, ANSWER_S)
        except OSError as error:
            raise explained(error, url, self._access) from None

    def unload_leftovers(
        self, models: Sequence[PushedModel], *, allow_other_models: bool, say: Callable[[str], None]
    ) -> None:
        """Unload the models that a killed measurement from this host, or an earlier attempt of this
        process, has left on the server.

        Raises ServerError if the server has other models that would disturb the measurement.
        """
        ours = {model.config.name for model in models}
        owners = {name: self._owner(name) for name in self.loaded()}
        dead = names_of_dead_owners(owner.partition(" ")[0] for owner in owners.values())
        left = [
            name
            for name, owner in owners.items()
            if owner.partition(" ")[0] in dead or identity() in owner
        ]
        if left:
            say(f"unloading the models of an ended measurement: {', '.join(left)}")
            self.unload(left, say)
            owners = {name: owner for name, owner in owners.items() if name not in left}
        problems = [
            f"{name!r}, {f'of the measurement {owner}' if owner else 'not loaded by Perseus'}"
            for name, owner in owners.items()
            if name in ours or owner or not allow_other_models
        ]
        if problems:
            raise ServerError(
                f"the server at {self._server.grpc_address} already has loaded models:"
                f" {'; '.join(problems)}. Perseus would replace a model with the name of a measured"
                " model, and all other models would share the server with the measured models. If"
                " nobody needs the loaded models, unload them (POST"
                " /v2/repository/models/<name>/unload). To measure although the server has models"
                " that Perseus did not load, set other_models: allow. The names of these models"
                " must differ from the names of the measured models."
            )

    def require_own(self, models: Sequence[PushedModel]) -> None:
        """Raise ServerError if another measurement has pushed models to the server, or if the
        server no longer has the pushed `models`.

        Two measurements from different machines may both find a server without models, and then
        both push their models. This method detects the conflict. If the server does not respond,
        the method raises no error, because the measurement itself then reports an error.
        """
        ours = {model.config.name for model in models}
        try:
            owners = {name: self._owner(name) for name in ours.union(self.loaded())}
        except ServerError:
            return
        problems = [
            f"{name!r} "
            + (f"belongs to the measurement {owner}" if owner else "was replaced or unloaded")
            for name, owner in sorted(owners.items())
            if identity() not in owner and (owner or name in ours)
        ]
        if problems:
            raise ServerError(
                f"another measurement uses the server at {self._server.grpc_address}:"
                f" {'; '.join(problems)}. Two measurements at the same time disturb each other:"
                " measure again when the other measurement has ended."
            )

    def loaded(self) -> list[str]:
        """Return the names of the models that are ready, or that the server is loading or
        unloading."""
        index = self._call("get_model_repository_index").models
        on_disk = {m.name for m in index if m.state not in ("", "UNAVAILABLE")}
        return sorted(on_disk.union(self._ready()))

    def states(self, name: str) -> dict[str, str]:
        """Return the state of each model in the server's model repository, and of the model `name`.

        A state is READY, or the reason why the model is not ready. A model is ready if one of its
        versions is ready. If the server has the model `name` only in memory, for example as a
        pushed model, the result contains this model, too.
        """
        states: dict[str, str] = {}
        for each in self._call("get_model_repository_index").models:
            if states.get(each.name) != READY:
                states[each.name] = ": ".join(filter(None, (each.state, each.reason)))
        ready = {name: READY} if self._is_ready(name) else {}
        return {name: state or "not loaded" for name, state in states.items()} | ready

    def _ready(self) -> set[str]:
        """Return the names of all ready models.

        The names come from the server's statistics, because the index of the model repository does
        not contain pushed models. Some servers report statistics only for one named model per call.
        For these servers, the result is empty.
        """
        try:
            return {m.name for m in self._call("get_inference_statistics").model_stats}
        except ServerError as error:
            if "Request for unknown model" in str(error):
                return set()
            raise

    def _is_ready(self, name: str) -> bool:
        try:
            return bool(self._call("is_model_ready", name))
        except ServerError:
            return False

    def config(self, name: str) -> pb.ModelConfig:
        """Return the configuration of a ready model, with the settings that the server added."""
        return self._call("get_model_config", name).config

    def versions(self, name: str) -> list[str]:
        """Return the ready versions of a model.

        The highest version responds to requests that name no version.
        """
        return list(self._call("get_model_metadata", name).versions)

    def _owner(self, name: str) -> str:
        """Return the owner of a pushed model (parameter MARK).

        The text is empty if Perseus did not push the model, or if the model is no longer loaded.
        """
        try:
            config = self.config(name)
        except ServerError:
            return ""
        return config.parameters[MARK].string_value if MARK in config.parameters else ""

    def push(self, model: PushedModel) -> None:
        """Load a model on the server, and check that the server uses the configured settings."""
        name = model.config.name
        text = json_format.MessageToJson(model.config, preserving_proto_field_name=True)
        files = {f"file:{path}": content for path, content in model.files.items()}
        self._call("load_model", name, config=text, files=files, timeout_s=LOAD_S)
        served = self.config(name)
        if problems := differences(model.config, served):
            raise ServerError(
                f"the server at {self._server.grpc_address} has changed settings of {name}:"
                f" {'; '.join(problems)}. Start the server with --disable-auto-complete-config."
            )
        if not self._call("is_model_ready", name):
            raise ServerError(
                f"the server at {self._server.grpc_address} has loaded {name}, but says that the"
                " model is not ready"
            )

    def unload(self, names: Sequence[str], say: Callable[[str], None]) -> None:
        """Unload models, and wait until the server has unloaded all of them.

        If a model cannot be unloaded, `say` gets a message, and the function continues with the
        next model.
        """
        refused: dict[str, list[str]] = {}
        deadline_s = time.monotonic() + UNLOAD_S
        for name in names:
            try:
                # If the server does not respond, the deadline limits the total wait for all models.
                left_s = max(0.1, min(ANSWER_S, deadline_s - time.monotonic()))
                self._call("unload_model", name, timeout_s=left_s)
            except ServerError as error:
                refused.setdefault(str(error), []).append(name)
        for why, which in refused.items():
            say(f"{', '.join(which)} could not be unloaded: {why}")
        kept = {name for which in refused.values() for name in which}
        try:
            left = set(names).intersection(self.loaded())
            while left - kept and time.monotonic() < deadline_s:
                time.sleep(_POLL_S)
                left = set(names).intersection(self.loaded())
        except ServerError as error:
            say(f"cannot list the models that are still loaded: {error}")
            left = kept
        if left:
            still = f"still loaded on {self._server.grpc_address}: {', '.join(sorted(left))}"
            say(f"{still}. See docs/how-to/remote-servers.md")


def differences(asked: pb.ModelConfig, served: pb.ModelConfig) -> list[str]:
    """Return one message for each changed setting that affects a measurement."""
    found: list[str] = []
    for what, read in _SETTINGS.items():
        wanted, got = read(asked), read(served)
        if wanted != got:
            found.append(f"{what} is {got}, not {wanted}")
    return found


_SETTINGS: dict[str, Callable[[pb.ModelConfig], Any]] = {
    "name": lambda config: config.name,
    "backend": lambda config: config.backend,
    "max_batch_size": lambda config: config.max_batch_size,
    "input": lambda config: [(i.name, i.data_type, list(i.dims)) for i in config.input],
    "output": lambda config: [(o.name, o.data_type, list(o.dims)) for o in config.output],
    "instances": lambda config: [(g.kind, g.count, list(g.gpus)) for g in config.instance_group],
    "dynamic batching": lambda config: (
        (
            config.dynamic_batching.max_queue_delay_microseconds,
            list(config.dynamic_batching.preferred_batch_size),
        )
        if config.HasField("dynamic_batching")
        else None
    ),
    "parameters": lambda config: {
        name: value.string_value for name, value in sorted(config.parameters.items())
    },
}
