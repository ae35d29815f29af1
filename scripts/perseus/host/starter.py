"""End a job when the Snakemake process that started it has ended, even if Snakemake was killed.

The workflow writes the identity of its Snakemake process into the environment variable
PERSEUS_SNAKEMAKE. Each job checks once a second whether the process with this identity still runs.
On a cluster, another Snakemake process on the machine of the job starts the job. In this case, the
variable has the identity of this other process.

A signal of the kernel at the end of the parent process (PR_SET_PDEATHSIG) would not be enough:
Snakemake starts jobs through threads and shells, so the parent process of a job is not always
Snakemake.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from perseus.host.identity import identity, is_gone
from perseus.host.signals import LEAVES_S

VARIABLE: Final = "PERSEUS_SNAKEMAKE"
POLL_S: Final = 1.0


def announce() -> None:
    """Write the identity of this process into the environment of all processes that it starts."""
    os.environ[VARIABLE] = identity()


def end_with_starter(say: Callable[[str], None]) -> None:
    """Send SIGTERM to this process when the process that called `announce` has ended.

    A thread watches the process that called `announce`. Before the thread sends the signal, it
    calls `say` with the reason. The thread repeats the signal until this process ends, because
    Python may drop the exception that a signal raises. If no process has called `announce`, the
    function does nothing.
    """
    starter = os.environ.get(VARIABLE, "")

    def watch() -> None:
        while not is_gone(starter):
            time.sleep(POLL_S)
        with suppress(OSError, ValueError):  # the disk may be full, or the log closed
            say("the Snakemake that started this job has ended, so the job ends")
        while True:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(LEAVES_S + POLL_S)

    if starter:
        threading.Thread(target=watch, name="starter", daemon=True).start()
