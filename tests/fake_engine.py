"""A stand-in for docker, podman and apptainer: it records its arguments and runs a real server.

The stand-in starts no container. It runs the tritonserver of the wheel with the mounts, CPUs and
arguments of the command line. As with docker, the server is no child process of the program: if
the program is killed, the server continues. The folder $FAKE_ENGINE contains `calls` (one JSON list
per line), `images` (one image per line), and `containers/<name>`, the id of the first process of
each container.

$FAKE_ENGINE_FAULT selects a fault: the "daemon" is down, a "pull" fails, "gpus" are not supported,
cores are "unpinned", the engine reports no "pid", or a "stuck" container is not removed.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

FAULT = os.environ.get("FAKE_ENGINE_FAULT", "")


def install(folder: Path, program: str) -> None:
    """Install this stand-in as `program` in a folder."""
    script = folder / program
    paths = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "scripts")]
    script.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path[:0] = {paths!r}\n"
        f"from fake_engine import main\nsys.exit(main({program!r}, sys.argv[1:]))\n"
    )
    script.chmod(0o755)


def main(program: str, command: list[str]) -> int:
    state = Path(os.environ["FAKE_ENGINE"])
    (state / "containers").mkdir(exist_ok=True)
    with (state / "calls").open("a") as file:
        file.write(json.dumps([program, *command]) + "\n")
    if FAULT == "daemon":
        return _fail("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.")
    match command:
        case ["ps", *_]:
            print("\n".join(path.name for path in (state / "containers").iterdir()))
        case ["image", "inspect", _, image]:
            if image not in _images(state):
                return _fail(f"Error: No such image: {image}")
            print(image_id(image))
        case ["pull", image]:
            return _pull(state, image)
        case ["exec", "--cleanenv", "--no-home", image, "true"]:
            return _pull(state, image)
        case ["run", *rest] | ["exec", *rest]:
            return _run(state, program, rest)
        case ["inspect", *_, name]:
            path = state / "containers" / name
            if not path.exists():
                return _fail(f"Error: No such container: {name}")
            print("0" if FAULT == "pid" else path.read_text())
        case ["stop", "-t", limit_s, name]:
            return _stop(state, name, float(limit_s))
        case ["rm", "--force", "--volumes", name]:
            if FAULT == "stuck":
                return _fail("Error: driver failed to remove root filesystem: device busy")
            _stop(state, name, 0)
            _end(name)
            (state / "containers" / name).unlink(missing_ok=True)
        case _:
            return _fail(f"unknown command {command}")
    return 0


def _fail(message: str, code: int = 1) -> int:
    print(message, file=sys.stderr)
    return code


def image_id(image: str) -> str:
    return f"sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def _images(state: Path) -> list[str]:
    path = state / "images"
    return path.read_text().splitlines() if path.exists() else []


def _pull(state: Path, image: str) -> int:
    print(f"{image}: Pulling from a registry", flush=True)
    if FAULT == "pull":
        return _fail("Error: manifest unknown")
    with (state / "images").open("a") as file:
        file.write(f"{image}\n")
    return 0


def _run(state: Path, program: str, rest: list[str]) -> int:
    # The import is here, because it would make each other command ten times slower.
    from perseus.serving.triton_wheel import environment, find_installation

    at = rest.index("tritonserver")
    options, arguments = rest[: at - 1], rest[at + 1 :]
    if FAULT == "gpus" and any("gpu" in option for option in options):
        return _fail('docker: could not select device driver "" with capabilities: [[gpu]].', 125)
    values = dict(option.split("=", 1) for option in options if "=" in option)
    name = values.get("--name") or arguments[0].removeprefix("--id=")
    mounts = [
        dict(part.split("=", 1) for part in option.split("=", 1)[1].split(",") if "=" in part)
        for option in options
        if option.startswith("--mount=")
    ]
    root = Path(tempfile.mkdtemp(dir=state))
    server = _server(root, mounts, arguments)
    if "--cpuset-cpus" in values and FAULT != "unpinned":
        os.sched_setaffinity(0, set(map(int, values["--cpuset-cpus"].split(","))))
    elif FAULT == "unpinned":
        os.sched_setaffinity(0, set(range(os.cpu_count() or 1)))
    child = subprocess.Popen(
        server,
        env=environment(find_installation(), root),
        start_new_session=program != "apptainer",
    )
    path = state / "containers" / name
    path.write_text(str(child.pid))
    signal.signal(signal.SIGTERM, lambda *_: child.send_signal(signal.SIGTERM))
    code = child.wait()
    if program == "apptainer" or ("--rm" in options and FAULT != "stuck"):
        path.unlink(missing_ok=True)
    return code


def _server(root: Path, mounts: list[dict[str, str]], arguments: list[str]) -> list[str]:
    """Return the command of the wheel's server, in a root folder with these mounts."""
    from perseus.serving.triton_wheel import fill_folder, find_installation

    installation = find_installation()
    places = {mount["target"]: Path(mount["source"]) for mount in mounts}
    own = root / "own"
    own.mkdir()
    for target, source in places.items():
        if target.startswith("/opt/tritonserver/backends/"):
            (own / Path(target).name).symlink_to(source)
    fill_folder(root, installation, own)
    return [
        str(installation.binary),
        f"--backend-directory={root / 'backends'}",
        *(argument.replace("=/models", f"={places['/models']}") for argument in arguments),
    ]


def _end(name: str) -> None:
    """Remove a container with all its processes and its /dev/shm, not only its first process."""
    from perseus.host.orphans import remove

    remove(Path(tempfile.gettempdir()) / name)


def _stop(state: Path, name: str, limit_s: float) -> int:
    """Send SIGTERM, and send SIGKILL after `limit_s` seconds.

    If no client is connected, the function sends SIGKILL at once, because Triton would take some
    more seconds to unload its models.
    """
    path = state / "containers" / name
    if not path.exists():
        return _fail(f"Error: No such container: {name}")
    pid = int(path.read_text())
    for number, wait_s in ((signal.SIGTERM, limit_s), (signal.SIGKILL, 5.0)):
        deadline = time.monotonic() + wait_s
        try:
            os.kill(pid, number)
            while time.monotonic() < deadline and _is_asked(pid):
                os.kill(pid, 0)
                time.sleep(0.02)
        except ProcessLookupError:
            return 0
    return 0


def _is_asked(pid: int) -> bool:
    """Return whether a client is connected to the server."""
    try:
        connections = psutil.Process(pid).net_connections("tcp")
    except psutil.NoSuchProcess:
        return False
    return any(each.status == psutil.CONN_ESTABLISHED for each in connections)
