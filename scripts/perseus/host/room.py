"""Whether a disk has room for what Snakemake itself writes: locks, records and scripts of jobs.

A job that finds no room says so itself (`host.job`); Snakemake ends with a traceback.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from perseus.host.job import FULL, MAKE_ROOM

NEEDED_BYTES: Final = 1_000_000
SAID: Final = f"\nThe disk is full. {MAKE_ROOM}"


def say_if_full(folder: Path) -> None:
    """Tell a person what to do where this folder has no room."""
    if _is_full(folder):
        print(SAID, file=sys.stderr)


def _is_full(folder: Path) -> bool:
    """False where that cannot be told."""
    try:
        with TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, NEEDED_BYTES)
    except OSError as error:
        return error.errno in FULL
    return False
