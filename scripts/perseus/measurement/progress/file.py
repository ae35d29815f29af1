"""The progress of each cell that is measured now, as a file beside its log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from perseus.host.identity import is_gone
from perseus.measurement.progress.state import OnProgress, Progress

SUFFIX: Final = ".progress.json"


@contextmanager
def progress_file(log: Path) -> Iterator[OnProgress]:
    """Keep the last progress of the job with this log in a file, which is gone when it has ended.

    It is written whole, between windows. That it cannot be is no reason for a measurement to fail.
    """
    path = log.with_suffix(SUFFIX)
    partial = path.with_name(f".{path.name}.partial")  # not `whole`, which looks through the folder

    def write(progress: Progress) -> None:
        with suppress(OSError):
            partial.write_text(progress.model_dump_json())
            partial.replace(path)

    try:
        yield write
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def under_way(logs: Path) -> list[Progress]:
    """Of the cells that are measured now, by the folder of all studies' logs.

    What a killed process left does not count, nor a file that is removed meanwhile, or that another
    version of Perseus wrote.
    """
    found = []
    for path in sorted(logs.glob(f"*/measure/*{SUFFIX}")):
        with suppress(OSError, ValueError):
            found.append(Progress.model_validate_json(path.read_text()))
    return [progress for progress in found if not is_gone(progress.process)]
