"""Explain why a server did not start or has ended.

The messages state the reason, the last lines of the server's log, and what to do.
"""

from __future__ import annotations

import re
from pathlib import Path

from perseus.host.child_process import CORES_REFUSED
from perseus.host.logs import last_lines


class ServerError(RuntimeError):
    """Perseus cannot use a server, for example because the server did not start or is unreachable.

    The message states the reason and what to do next.
    """


class PortTakenError(ServerError):
    """Another program took a port after Perseus had chosen it, and before the server used it."""


_HINTS = (
    (
        r"could not select device driver|unresolvable CDI|nvidia-container-cli",
        "Hint: the container engine cannot give a container access to GPUs; install the NVIDIA "
        "Container Toolkit, and for podman run "
        "'nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml'.",
    ),
    (
        r"cgroup controller|cpuset",
        "Hint: this user is not allowed to pin containers to cores; delegate the cgroup controller"
        " cpuset to the user, run as root, or choose the launcher apptainer, which needs no"
        " cgroup.",
    ),
    (
        r"tritonserver.*(executable file )?not found|tritonserver: no such file",
        "Hint: the image has no tritonserver; use nvcr.io/nvidia/tritonserver:<YY.MM>-py3.",
    ),
    (
        r"unable to find backend library|unable to find .*backend",
        "Hint: the config.pbtxt of the model names a backend that the server does not have.",
    ),
    (
        r"ModuleNotFoundError|No module named",
        "Hint: a Python package that a backend imports is missing; run 'make environment' in the"
        " checkout of Perseus.",
    ),
    (
        r"(shared memory|/dev/shm).*No space left|No space left.*(shared memory|/dev/shm)",
        "Hint: /dev/shm is too small for the model instances; enlarge /dev/shm.",
    ),
    (
        r"No space left",
        "Hint: a disk is full; free some space, or set TMPDIR to another folder.",
    ),
    (
        r"failed to map segment from shared object",
        "Hint: the temporary folder is probably mounted noexec. Set TMPDIR to another folder.",
    ),
    (
        r"error while loading shared libraries: libpython",
        "Hint: the server needs the library libpython of this Python; in Debian and Ubuntu:"
        " apt-get install libpython3.11 (or the version that python3 has).",
    ),
    (
        r"error while loading shared libraries",
        "Hint: a system library is missing; install it, or reinstall nvidia-pytriton.",
    ),
    (
        r"[Ff]ailed to run python backend stub|triton_python_backend_stub.*Permission denied",
        "Hint: the stub (the process of a Python backend) could not run, probably because the"
        " temporary folder is mounted noexec. Set TMPDIR to another folder.",
    ),
)


def in_a_line(error: Exception) -> str:
    """Return the message of an error as one line.

    If the message contains lines of a log, the function keeps only the lines that say why a model
    was not loaded.
    """
    first, *log = str(error).splitlines()
    message = re.sub(r"; the (last lines of .*|end of .*):$", "", first)
    refused = (re.search(r"failed to load '.*", line) for line in log)
    return "; ".join([message, *dict.fromkeys(each[0].rstrip('"') for each in refused if each)])


def early_exit(returncode: int, log_path: Path) -> ServerError:
    if returncode == CORES_REFUSED:
        return ServerError(
            "the CPU set of this job no longer contains all cores of the server, because the CPU"
            " set changed during the job (taskset, a cgroup). Start the job again."
        )
    lines = last_lines(log_path)
    what = f"signal {-returncode}" if returncode < 0 else f"exit code {returncode}"
    kind = ServerError
    if re.search(r"already in use|[Aa]ddress in use|failed to (listen|start \w+ service)", lines):
        kind = PortTakenError
    return kind(
        f"the server ended before it was ready ({what}); the last lines of its log:\n"
        + "\n".join(filter(None, (lines, _hint(lines))))
    )


def never_ready(timeout_s: float, log_path: Path) -> ServerError:
    lines = last_lines(log_path)
    return ServerError(
        f"the server was not ready after {timeout_s:g} s; the end of {log_path}:\n"
        + "\n".join(filter(None, (lines, _hint(lines) or _still_loading(log_path))))
    )


def dead_model(log_path: Path) -> ServerError:
    """Return the error for a server that cannot become ready, because the process of a model has
    ended."""
    lines = last_lines(log_path)
    return ServerError(
        "the server cannot start: the process of a model ended before it was ready; the last lines"
        " of the server's log:\n" + "\n".join(filter(None, (lines, _hint(lines))))
    )


def _hint(lines: str) -> str:
    return next((text for pattern, text in _HINTS if re.search(pattern, lines)), "")


def _still_loading(log_path: Path) -> str:
    log = log_path.read_text(errors="replace")
    begun = dict.fromkeys(re.findall(r"\bloading: (\S+?):\d+", log))
    ended = {*re.findall(r"(?:successfully loaded|failed to load) '([^']+)'", log)}
    loading = ", ".join(name for name in begun if name not in ended)
    hint = f"Hint: the server was still loading {loading}. With more cores, models load faster."
    return hint if loading else ""
