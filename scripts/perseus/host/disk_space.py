"""Report a full disk if Snakemake ends because it cannot write its locks, records or scripts.

Without this module, Snakemake would print only a traceback. If a job of the workflow cannot write
because the disk is full, the module `host.job` reports the full disk.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from perseus.host.job import FULL, MAKE_ROOM

NEEDED_BYTES: Final = 1_000_000
FULL_MESSAGE: Final = f"\nThe disk is full. {MAKE_ROOM}"


def report_if_full(folder: Path) -> None:
    """If the disk of this folder is full, print a message that says what to do."""
    if _is_full(folder):
        print(FULL_MESSAGE, file=sys.stderr)


def _is_full(folder: Path) -> bool:
    """Return whether the disk of a folder is full; False if unknown."""
    try:
        with TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, NEEDED_BYTES)
    except OSError as error:
        return error.errno in FULL
    return False
