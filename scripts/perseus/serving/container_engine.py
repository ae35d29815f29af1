"""Call a container engine (docker, podman or apptainer) to check the engine, to get images, and to
remove containers.

In this module, each argument `engine` is the path of the engine's program. If a call fails, the
functions raise a ServerError that says what to do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from perseus.host.child_process import kill_group, start
from perseus.host.logs import last_lines
from perseus.host.orphans import names_of_dead_owners
from perseus.host.signals import signals_deferred
from perseus.serving.failures import ServerError

Say = Callable[[str], None]
PULL_S = 3600.0
_COMMAND_S = 60.0
_SAY_EVERY_S = 30.0
_REMOVE_S = 30.0


def find_engine(program: str) -> str:
    """Return the path of an engine's program. Raises ServerError if the program is missing."""
    path = shutil.which(program)
    if path is None:
        raise ServerError(
            f"the launcher {program!r} needs the program {program}, which is not on the PATH. "
            f"Install {program} on the machine that measures, or choose another launcher."
        )
    return path


def call(engine: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a short command of the engine, and return its exit code and output.

    The function does not check the exit code.
    """
    try:
        return subprocess.run(
            [engine, *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_COMMAND_S,
            start_new_session=True,  # so that a second Ctrl-C does not interrupt a removal
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServerError(
            f"{Path(engine).name} does not answer ({error}). Check whether its daemon runs."
        ) from error


def sweep_containers(engine: str) -> None:
    """Remove each container that Perseus started in a measuring process that has since ended."""
    listed = call(engine, "ps", "--all", "--filter=name=perseus-triton-", "--format={{.Names}}")
    if listed.returncode != 0:
        raise ServerError(
            f"{Path(engine).name} cannot be used here: {_last_line(listed.stderr)}\n"
            "Does its daemon run (systemctl start docker), and may this user call the daemon "
            "(group docker)? podman and apptainer need no daemon."
        )
    for name in names_of_dead_owners(listed.stdout.split()):
        remove_container(engine, name)


def have_image(engine: str, image: str, log_path: Path, say: Say) -> str | None:
    """Pull an image if the engine does not have it, and return the id of the image.

    The id identifies the content of the image. The same name can later refer to another image.
    """
    if (found := image_id(engine, image)) is not None:
        return found
    say(f"pulling the image {image}, at most {PULL_S / 60:.0f} min; progress: see {log_path}")
    _prepare([engine, "pull", image], image, log_path, say)
    return image_id(engine, image)


def image_id(engine: str, image: str) -> str | None:
    """Return the id of an image; None if the engine does not have the image. Raises ServerError if
    the engine does not answer."""
    asked = call(engine, "image", "inspect", "--format={{.Id}}", image)
    return asked.stdout.strip() if asked.returncode == 0 else None


def apptainer_image(engine: str, image: str, log_path: Path, say: Say) -> str:
    """Return the path or the URI of an image for apptainer.

    If `image` is a URI, apptainer first pulls the image into its cache.
    """
    if "://" not in image:
        path = Path(image).resolve()
        if not path.exists():
            raise ServerError(
                f"there is no image {path}. Make it with 'apptainer pull {path.name} "
                "docker://nvcr.io/nvidia/tritonserver:<YY.MM>-py3', or set the key image to the URI"
                " of an image (docker://...)."
            )
        return str(path)
    say(f"preparing the image {image}, at most {PULL_S / 60:.0f} min; progress: see {log_path}")
    _prepare([engine, "exec", "--cleanenv", "--no-home", image, "true"], image, log_path, say)
    return image


def _prepare(command: list[str], image: str, log_path: Path, say: Say) -> None:
    program = Path(command[0]).name
    process = None
    begun_s = said_s = time.monotonic()
    try:
        with signals_deferred():
            process = start(command, sorted(os.sched_getaffinity(0)), log_path, os.environ)
        while process.poll() is None:
            time.sleep(0.05)
            now_s = time.monotonic()
            if now_s - begun_s > PULL_S:
                raise ServerError(
                    f"{program} did not get the image {image} within {PULL_S / 60:.0f} min; the "
                    f"end of {log_path}:\n{last_lines(log_path)}\nPull the image before the study."
                )
            if now_s - said_s > _SAY_EVERY_S:
                say(f"still pulling: {_last_line(log_path.read_text(errors='replace'))}")
                said_s = now_s
        if process.returncode != 0:
            raise ServerError(
                f"{program} has no image {image} and cannot pull it:\n{last_lines(log_path)}\n"
                "Is the name right, is this machine online, and is it logged in to the registry? "
                "You can also copy an image to this machine as a file."
            )
    finally:
        with signals_deferred():
            if process is not None:
                kill_group(process)


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["(no message)"])[-1]


def container_pid(engine: str, name: str) -> int | None:
    """Return the id of the container's first process; None if the engine does not report the id."""
    asked = call(engine, "inspect", "--format={{.State.Pid}}", name)
    pid = asked.stdout.strip()
    return int(pid) if asked.returncode == 0 and pid.isdigit() and pid != "0" else None


def remove_container(engine: str, name: str) -> None:
    """Remove a container. Raises ServerError if the container still exists afterwards."""
    deadline = time.monotonic() + _REMOVE_S
    while True:
        removed = call(engine, "rm", "--force", "--volumes", name)
        if removed.returncode == 0 or call(engine, "inspect", name).returncode != 0:
            return
        if time.monotonic() > deadline:  # until then, the engine may remove it itself (--rm)
            raise ServerError(
                f"{Path(engine).name} cannot remove the container {name}: "
                f"{_last_line(removed.stderr)}. Remove the container before you measure again."
            )
        time.sleep(0.2)
