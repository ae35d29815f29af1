"""Detect that a file of the user has new content, although its time stamp is old.

Snakemake compares the checksum of an input file only if the file is newer than the output of the
job. After `mv`, `cp -p` or `rsync -a`, a changed file may be older than the output, so Snakemake
alone would not repeat the job.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

END_BYTES: Final = 2**20


def contents(paths: Iterable[str]) -> dict[str, list[str]]:
    """Return `{"files": fingerprints}`, with one fingerprint for each file; empty without files.

    A job repeats if a fingerprint changes. The fingerprint covers the size, the first MiB and the
    last MiB of a file. It does not cover the path, so that workflows with the same files in other
    folders can share exports. The function leaves out missing files, which Snakemake reports.
    """
    fingerprints = [of for path in paths if (of := _fingerprint(path))]
    return {"files": fingerprints} if fingerprints else {}


@cache
def _fingerprint(path: str) -> str | None:
    try:
        with Path(path).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            ends = file.read(END_BYTES)
            file.seek(max(size - END_BYTES, file.tell()))
            ends += file.read(END_BYTES)
    except OSError:
        return None
    return hashlib.sha256(b"%d " % size + ends).hexdigest()
