"""Receivers of the progress of a measurement job."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from perseus.measurement.progress.file import progress_file
from perseus.measurement.progress.live_view import live_view
from perseus.measurement.progress.overview import overview
from perseus.measurement.progress.state import OnProgress, Progress


@contextmanager
def listeners(log: str, say: Callable[[str], None]) -> Iterator[OnProgress]:
    """The file beside the job's log, and the terminal: a live view if possible, else a line per
    window with `say`."""
    path = Path(log)
    known = overview(path.parents[1], path.stem)
    with progress_file(path) as write, live_view(sys.stderr, known) as show:

        def tell(progress: Progress) -> None:
            write(progress)
            if progress.text and show:
                print(progress.text, flush=True)  # to the log, which gets the job's output
            elif progress.text:
                say(progress.text)
            if show:
                show(progress)

        yield tell
