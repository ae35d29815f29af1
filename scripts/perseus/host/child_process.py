"""Start programs on given cores, and end each program when the process that started it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

CORES_REFUSED = 96
"""Exit code of the child process if the kernel does not allow the process to use its cores."""

# This script runs in the child process before the program. A preexec_fn could do the same, but is
# unsafe in a process with threads, for example gRPC's threads. The number 1 is PR_SET_PDEATHSIG:
# the kernel sends SIGTERM when the parent ends. If the parent ended before the call of prctl, the
# kernel sends no signal. In this case, getppid() returns another id, and the script exits.
_EXEC = f"""
import ctypes, os, signal, sys
parent, cores, *command = sys.argv[1:]
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
if os.getppid() != int(parent):
    sys.exit("the measuring process has ended")
wanted = set(map(int, cores.split(",")))
try:
    os.sched_setaffinity(0, wanted)
except OSError:
    pass
if os.sched_getaffinity(0) != wanted:
    sys.exit({CORES_REFUSED})
os.execv(command[0], command)
"""


def start(
    command: Sequence[str], cores: Sequence[int], log_path: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a program in its own session, pinned to `cores`.

    When the calling thread ends, the kernel sends SIGTERM to the program. The first element of
    `command` is the path of the program. The output of the program replaces the content of the file
    `log_path`.
    """
    log_path.parent.mkdir(parents=True, exist_ok=True)
    shim = [sys.executable, "-I", "-S", "-c", _EXEC, str(os.getpid()), ",".join(map(str, cores))]
    with log_path.open("wb") as log:
        return subprocess.Popen(
            [*shim, *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a program that `start` has started, together with its children. If the program has
    already ended, do nothing."""
    if process.poll() is None:  # until `wait`, no other process can get this process id
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
