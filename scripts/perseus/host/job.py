"""What every job has in common: a log, progress for a person, and failures without a traceback."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TextIO

from perseus.host.printable import printable
from perseus.host.starter import end_with_starter

LAYOUT: Final = "\n\t"

FULL: Final = (errno.ENOSPC, errno.EDQUOT)
"""What a disk says that has no room, or none for this user."""

MAKE_ROOM: Final = "What is finished is kept: make room, and the same command goes on."


@contextmanager
def job(log: str, *expected: type[Exception]) -> Iterator[Callable[[str], None]]:
    """Run a job's body; yields a function that tells its progress to the terminal and the log.

    The log's folder says which job speaks. An `expected` exception ends the process with its
    message and exit code 1, and leaves it beside the log as *.error, to be said once more at the
    end; so does a full disk; any other is a fault of Perseus and keeps its traceback. A job ends
    with its Snakemake, and on Ctrl-C without a word: Snakemake has one. What libraries print goes
    to the log alone.
    """
    path = Path(log)
    failure = path.with_suffix(".error")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        failure.unlink(missing_ok=True)
        with _logged(path, failure, expected) as say:
            yield say
    except OSError as error:  # also of the log itself, when it is closed
        if error.errno not in FULL:
            raise
        message = f"\n{path.stem}: the disk is full ({error}). {MAKE_ROOM}"
        with suppress(OSError):
            failure.write_text(message + "\n")
        sys.exit(message)


@contextmanager
def _logged(
    path: Path, failure: Path, expected: tuple[type[Exception], ...]
) -> Iterator[Callable[[str], None]]:
    """Yields what tells progress; the expected exceptions end the process."""
    start_s = time.monotonic()
    with path.open("w", buffering=1) as file, _printed_to(file):

        def say(message: str) -> None:
            line = f"[{path.stem} {time.monotonic() - start_s:4.0f} s] {message}"
            print(line, file=file)
            print(line, file=sys.stderr, flush=True)

        # To the log alone: the terminal may have gone with Snakemake.
        end_with_starter(lambda message: print(f"[{path.stem}] {message}", file=file))
        try:
            yield say
        except KeyboardInterrupt:
            print(f"[{path.stem}] interrupted", file=file)
            sys.exit(128 + signal.SIGINT)
        except expected as error:
            # Libraries quote names in a user's files as they are.
            message = f"\n{path.stem}: {printable(str(error), kept=LAYOUT)}"
            print(message, file=file)
            failure.write_text(message + "\n")
            sys.exit(message)


@contextmanager
def _printed_to(file: TextIO) -> Iterator[None]:
    """Standard output of the process, also of its C libraries: HiGHS prints amid a solution."""
    terminal = os.dup(1)
    os.dup2(file.fileno(), 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        ctypes.CDLL(None).fflush(None)  # of all streams of C, which have buffers of their own
        os.dup2(terminal, 1)
        os.close(terminal)
