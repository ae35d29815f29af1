"""Which cores of this host a server has, and which its client."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class TooFewCoresError(RuntimeError):
    """The host has no core left for the client."""


def split_cores(server_cores: int) -> tuple[list[int], list[int]]:
    """(cores of the server, cores of the client), disjoint, of those that this process may use.

    The server has the last ones: interrupts and other work prefer the first.
    Raises TooFewCoresError when none would be left for the client.
    """
    usable = sorted(os.sched_getaffinity(0))
    if server_cores >= len(usable):
        raise TooFewCoresError(
            f"the server asks for {server_cores} cores, this process may use {len(usable)}, and the"
            " client needs at least one of its own: set the server's cores: lower, or measure on a"
            " larger machine"
        )
    return usable[-server_cores:], usable[:-server_cores]


@contextmanager
def claimed_cores(count: int, folder: Path | None = None) -> Iterator[list[int]]:
    """Cores that no other process of this host claims meanwhile; waits until there are as many.

    A claim is a lock on a file in `folder` (the temporary one), which ends with its process.
    Raises TooFewCoresError when this process may not use so many.
    """
    usable = sorted(os.sched_getaffinity(0))
    if count > len(usable):
        raise TooFewCoresError(
            f"the client asks for {count} cores, this process may use {len(usable)}: set"
            " remote.client_cores lower, or measure on a larger machine"
        )
    while True:
        with contextlib.ExitStack() as stack:
            claimed: list[int] = []
            for core in usable:
                if len(claimed) < count and stack.enter_context(_claim(core, folder)):
                    claimed.append(core)
            if len(claimed) == count:
                yield claimed
                return
        time.sleep(0.2)


@contextmanager
def _claim(core: int, folder: Path | None) -> Iterator[bool]:
    """Whether the core could be claimed."""
    path = (folder or Path(tempfile.gettempdir())) / f"perseus-core-{os.getuid()}-{core}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)


def beside_client(client_cores: int) -> tuple[list[int], list[int]]:
    """(the other cores, those of the client) of this process, disjoint.

    Raises TooFewCoresError when no other would be left.
    """
    usable = sorted(os.sched_getaffinity(0))
    if client_cores >= len(usable):
        raise TooFewCoresError(
            f"the client asks for {client_cores} cores, this process may use {len(usable)}, and the"
            " null model that finds its ceiling needs one: set remote.client_cores lower, or"
            " measure on a larger machine"
        )
    return usable[client_cores:], usable[:client_cores]
