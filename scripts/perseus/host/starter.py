"""End a job when the Snakemake that started it has ended, even if it was killed.

Snakemake starts jobs through threads and shells, so a job is not always its child, and a signal at
the death of the parent is not enough. Therefore Snakemake passes its identity in the environment,
and each job polls it. On a cluster, it is the Snakemake on the same machine. A job without a
Snakemake watches nothing.
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
    """Pass the identity of this process to the processes that it starts."""
    os.environ[VARIABLE] = identity()


def end_with_starter(say: Callable[[str], None]) -> None:
    """Send SIGTERM to this process when the announced process has ended.

    A thread calls `say` with the reason. The signal is repeated, because an exception may be lost.
    """
    starter = os.environ.get(VARIABLE, "")

    def watch() -> None:
        while not is_gone(starter):
            time.sleep(POLL_S)
        with suppress(OSError, ValueError):  # a full disk, a closed log
            say("the Snakemake that started this job has ended, so the job ends")
        while True:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(LEAVES_S + POLL_S)

    if starter:
        threading.Thread(target=watch, name="starter", daemon=True).start()
