"""Send the progress of a measurement job to its file and to the terminal."""

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
    """Yield a function that writes the progress to the file beside the job's log and to the
    terminal.

    If the terminal can move its cursor, Perseus shows a live view. Without a live view, `say` gets
    one line per window.
    """
    path = Path(log)
    known = overview(path.parents[1], path.stem)
    with progress_file(path) as write, live_view(sys.stderr, known) as show:

        def tell(progress: Progress) -> None:
            write(progress)
            if progress.text and show:
                print(progress.text, flush=True)  # the log contains the output of the job
            elif progress.text:
                say(progress.text)
            if show:
                show(progress)

        yield tell
