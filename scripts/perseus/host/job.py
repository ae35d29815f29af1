"""Run the body of a Snakemake job with a log, progress messages, and errors without a traceback."""

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
"""Error numbers of a full disk and an exhausted disk quota."""

MAKE_ROOM: Final = "Free some space and run the same command again: finished work is kept."


@contextmanager
def job(log: str, *expected: type[Exception]) -> Iterator[Callable[[str], None]]:
    """Run the body of a Snakemake job. Yield a function that prints progress messages.

    The messages go to the terminal and to the log of the job. The output of libraries goes only to
    the log. If one of the `expected` exceptions occurs or the disk is full, the process ends with
    an error message and exit code 1. The function also writes the error message to a file *.error
    in the folder of the log. At the end of the run, Perseus prints the content of all files
    *.error. Any other exception is a bug of Perseus and keeps its traceback.

    If the Snakemake process that started the job ends, the job also ends. After Ctrl-C, the job
    prints no message to the terminal.
    """
    path = Path(log)
    failure = path.with_suffix(".error")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        failure.unlink(missing_ok=True)
        with _logged(path, failure, expected) as say:
            yield say
    except OSError as error:  # on a full disk, closing the log may also fail
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
    start_s = time.monotonic()
    with path.open("w", buffering=1) as file, _printed_to(file):

        def say(message: str) -> None:
            line = f"[{path.stem} {time.monotonic() - start_s:4.0f} s] {message}"
            print(line, file=file)
            print(line, file=sys.stderr, flush=True)

        # Print this message only to the log: the terminal may have been closed, and with it
        # Snakemake.
        end_with_starter(lambda message: print(f"[{path.stem}] {message}", file=file))
        try:
            yield say
        except KeyboardInterrupt:
            print(f"[{path.stem}] interrupted", file=file)
            sys.exit(128 + signal.SIGINT)
        except expected as error:
            if isinstance(error, OSError) and error.errno in FULL:
                raise
            # The message of a library may contain control codes from the name of a user's file.
            message = f"\n{path.stem}: {printable(str(error) or repr(error), allowed=LAYOUT)}"
            print(message, file=file)
            failure.write_text(message + "\n")
            sys.exit(message)


@contextmanager
def _printed_to(file: TextIO) -> Iterator[None]:
    """Redirect the standard output to a file, including the output of C libraries such as HiGHS."""
    terminal = os.dup(1)
    os.dup2(file.fileno(), 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        ctypes.CDLL(None).fflush(None)  # C libraries buffer their output separately
        os.dup2(terminal, 1)
        os.close(terminal)
