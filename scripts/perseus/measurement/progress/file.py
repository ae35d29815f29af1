"""Write and read progress files. Each running cell has one progress file beside its log."""

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
    """Yield a function that writes the progress of a job to a file beside the log of the job.

    Perseus calls the yielded function between windows. Each call replaces the whole file. If
    Perseus cannot write the file, the measurement continues. At the end of the context, Perseus
    removes the file.
    """
    path = log.with_suffix(SUFFIX)
    partial = path.with_name(f".{path.name}.partial")  # `files.whole` would list the whole folder

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
    """Return the progress of all running cells. `logs` is the folder with the logs of all studies.

    The function ignores files of killed processes, files that disappear during the call, and files
    in the format of another version of Perseus.
    """
    found = []
    for path in _files(logs):
        with suppress(OSError, ValueError):
            found.append(Progress.model_validate_json(path.read_text()))
    return [progress for progress in found if not is_gone(progress.process)]


def delete_progress_files(logs: Path) -> None:
    """Delete the progress files of all studies. Call this function while no cell is measured.

    After a power failure, old progress files remain. `under_way` cannot tell that the processes
    that wrote these files have ended, and would return their cells as running cells.
    """
    for path in _files(logs):
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _files(logs: Path) -> list[Path]:
    return sorted(logs.glob(f"*/measure/*{SUFFIX}"))
