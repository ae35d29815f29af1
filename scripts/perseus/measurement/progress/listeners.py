"""Who hears of the progress of a job that measures."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perseus.measurement.progress.file import progress_file
from perseus.measurement.progress.live_view import live_view
from perseus.measurement.progress.state import OnProgress, Progress


@contextmanager
def listeners(log: str) -> Iterator[OnProgress]:
    """The file beside the job's log, and the terminal, if it has one."""
    with progress_file(Path(log)) as write, live_view(sys.stderr) as show:

        def tell(progress: Progress) -> None:
            write(progress)
            show(progress)

        yield tell
