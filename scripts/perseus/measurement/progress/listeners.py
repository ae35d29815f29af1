"""Send the progress of a measurement job to its progress file and to the terminal."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from perseus.measurement.progress.file import progress_file
from perseus.measurement.progress.live_view import live_view
from perseus.measurement.progress.overview import NAME, overview
from perseus.measurement.progress.state import OnProgress, Progress


@contextmanager
def listeners(log: str, say: Callable[[str], None]) -> Iterator[OnProgress]:
    """Yield a function that shows the progress, and writes it to a file beside the log of the job.

    Perseus shows a live view if the terminal can move its cursor, and if no other job of the run
    shows a live view. Without a live view, `say` gets one line per window.
    """
    path = Path(log)
    logs = path.parents[1]
    known = overview(logs, path.stem)
    with (
        progress_file(path) as write,
        _is_first(logs) as is_first,
        live_view(sys.stderr, known, is_first=is_first) as show,
    ):

        def tell(progress: Progress) -> None:
            write(progress)
            if progress.text and show:
                print(progress.text, flush=True)  # the log contains the output of the job
            elif progress.text:
                say(progress.text)
            if show:
                show(progress)

        yield tell


@contextmanager
def _is_first(logs: Path) -> Iterator[bool]:
    """Yield whether this job may show a live view.

    Only one job of a run may show a live view at a time, because two live views on one terminal
    would erase each other. This job locks the file with the plan of the run (flock) until the
    context ends. Each run has its own plan, so jobs of different runs do not exclude each other.
    Without a plan, or on a file system without flock, the function yields True to every job.
    """
    try:
        descriptor = os.open(logs / NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield True
        return
    try:
        yield _could_lock(descriptor)
    finally:
        os.close(descriptor)


def _could_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return not isinstance(error, BlockingIOError)
    return True
