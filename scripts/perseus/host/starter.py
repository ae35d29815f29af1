"""A job ends with the Snakemake that started it, also when that was killed.

Snakemake starts jobs through threads and shells, so that a job is not always its child, and the
kernel's signal at the death of a parent would miss it. So Snakemake leaves its name in the
environment of its jobs, and each looks whether it is still there. Where a scheduler starts jobs on
other machines, it is the Snakemake on that machine; a job without a Snakemake looks after nobody.
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
LOOK_S: Final = 1.0


def announce() -> None:
    """Leave the name of this process to those that it starts."""
    os.environ[VARIABLE] = identity()


def end_with_starter(say: Callable[[str], None]) -> None:
    """End this process in order (SIGTERM) once the one that was announced is gone.

    `say` hears why, from another thread. The signal comes again for as long as the process is still
    there: what it raises may be lost.
    """
    starter = os.environ.get(VARIABLE, "")

    def watch() -> None:
        while not is_gone(starter):
            time.sleep(LOOK_S)
        with suppress(OSError, ValueError):  # a full disk, a closed log
            say("what started this job has ended, and the job with it")
        while True:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(LEAVES_S + LOOK_S)

    if starter:
        threading.Thread(target=watch, name="starter", daemon=True).start()
