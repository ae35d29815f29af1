"""Connect to a server that runs on another host.

Perseus measures the server's own models, or pushes models to the server (loads models that are not
on the server's disk). To push models, the launcher needs a Triton with explicit model control and
gRPC. At the end of a measurement, also after an error, the launcher unloads the pushed models. The
server's own models stay unchanged. If Perseus measures only the server's own models, any server of
the Open Inference Protocol is suitable.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

from perseus.host.orphans import unique_name
from perseus.host.signals import signals_deferred
from perseus.serving.access import read_access
from perseus.serving.failures import ServerError
from perseus.serving.model_control import Control, PushedModel, read_models
from perseus.serving.open_inference import server_metadata
from perseus.serving.running_server import CONFIGURATION, REPOSITORY, RunningServer
from perseus.serving.statistics import server_times
from perseus.study.remote import Remote
from perseus.study.tasks.measure import MeasuredServer


def serve(
    server: MeasuredServer,
    repository: Path | None,
    log_path: Path,
    cores: Sequence[int],
    *,
    say: Callable[[str], None],
    rate_limited_cores: int = 0,
) -> AbstractContextManager[RunningServer]:
    """Yield a remote server.

    The arguments are those of `launch`, but `cores` and `rate_limited_cores` have no effect.
    """
    if server.remote is None:
        raise ServerError(
            f"{server.name}: the launcher 'remote' needs the address of the server: set the key"
            " `remote`"
        )
    return remote_server(server.remote, repository, log_path, say=say)


@contextmanager
def remote_server(
    remote: Remote,
    repository: Path | None,
    log_path: Path,
    *,
    say: Callable[[str], None],
) -> Iterator[RunningServer]:
    """Yield a remote server, which serves every model of `repository` while the context is open.

    If `repository` is None, Perseus measures the server's own models, and the server needs gRPC or
    HTTP. While the context is open, no other measurement from this machine may use the server, and
    no measurement from another machine may push models. The function writes a description of the
    server to `log_path`; the server's own log is on its host.

    Raises ServerError if the server is unreachable or refuses a call, or if another measurement
    pushes models before the context closes. If `repository` is not None, the function also raises
    ServerError in each of these cases:

    - The server has no explicit model control.
    - The server has loaded other models, and `remote.other_models` is not "allow".
    - The server does not serve the pushed models.
    """
    models = _read(repository) if repository else []
    server, about = _found(remote, needs_grpc=bool(models))
    log_path.parent.mkdir(parents=True, exist_ok=True)
    log_path.write_text(f"{about}\nIts own log is on {remote.host}.\n")
    if REPOSITORY not in server.extensions and not models:
        yield server
        return
    with Control(server) as control:
        control.check_http()
        allowed = remote.other_models == "allow" or not models
        control.unload_leftovers(models, allow_other_models=allowed, say=say)
        pushed: list[str] = []
        start_s = time.monotonic()
        try:
            for model in models:
                say(f"pushing {model.config.name} to the server ({model.megabytes:.0f} MB)")
                pushed.append(model.config.name)
                control.push(model)
                server_times(server, model.config.name)  # fails if HTTP reaches another server
            startup_s = time.monotonic() - start_s if models else 0.0
            control.require_own(models)
            yield replace(server, startup_s=startup_s)
            control.require_own(models)
        finally:
            with signals_deferred():
                control.unload(pushed, say)


def _found(remote: Remote, *, needs_grpc: bool) -> tuple[RunningServer, str]:
    """Return the server, and a text with the name, the version and the address of the server.

    The function calls the server over gRPC, or over HTTP if the server has no gRPC. Raises
    ServerError if the server responds neither over gRPC nor over HTTP. The message states the error
    of gRPC.
    """
    access = read_access(remote, os.environ)
    server = RunningServer(remote.grpc, remote.http, remote.metrics, None, access)
    try:
        about = server_metadata(server)
        extensions = frozenset(about.extensions)
    except ServerError as of_grpc:
        if needs_grpc:
            raise
        server = replace(server, protocol="http")
        try:
            about = server_metadata(server)
        except ServerError:
            raise of_grpc from None
        extensions = frozenset(about.extensions) - {CONFIGURATION, REPOSITORY}  # need gRPC
    description = access.hide(f"{about.name} {about.version} at {server.asked_address}")
    return replace(server, extensions=extensions), description


def _read(repository: Path) -> list[PushedModel]:
    return read_models(repository, f"{unique_name()} {repository.parent.name}/{repository.name}")
