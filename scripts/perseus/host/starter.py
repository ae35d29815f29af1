"""End a job when the Snakemake process that started the job has ended, even if Snakemake was
killed.

Snakemake starts jobs through threads and shells, so the parent process of a job is not always
Snakemake. The kernel can send a signal to a job when its parent process ends (PR_SET_PDEATHSIG),
but this signal does not show that Snakemake has ended. Snakemake writes its identity into the
environment variable PERSEUS_SNAKEMAKE. Each job checks once a second whether the Snakemake process
with this identity still runs. On a cluster, the environment variable PERSEUS_SNAKEMAKE has the
identity of the Snakemake process on the machine of the job.
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
    """Pass the identity of this process to all processes that it starts, in an environment
    variable."""
    os.environ[VARIABLE] = identity()


def end_with_starter(say: Callable[[str], None]) -> None:
    """Send SIGTERM to this process when the Snakemake process that started this process has ended.

    A thread watches Snakemake, and calls `say` with the reason before it sends the signal. The
    watching thread sends the signal repeatedly, because Python may lose the exception that a signal
    raises.
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
