"""Detect new content in a file of the user, although the time stamp of the file is old.

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
    """Return one fingerprint for each file, as `{"files": fingerprints}`; `{}` without files.

    Snakemake repeats a job if a fingerprint changes. A fingerprint covers the size, the first MiB
    and the last MiB of a file, but not the path. Workflows with the same files in other folders can
    therefore share exports. The function leaves out missing files, because Snakemake reports them.
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
