"""A model file that cannot be made: in its place lies one that says why.

It goes the way of any model file, so that a setting of a grid ends as a row with its reason while
the others are measured. A scenario as it is configured stops the run (`require_made`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from perseus.host.files import whole

MARK: Final = b"Perseus has no model here: "

OF_THE_MACHINE: Final = (ImportError, MemoryError, OSError)
"""Exceptions that say nothing of a network: the same job may succeed another time."""


class UnmadeError(RuntimeError):
    """There is no model in a file; the message says why."""


def made(
    make: Callable[[], dict[str, Any]],
    path: Path,
    say: Callable[[str], None],
    *refusals: type[Exception],
) -> dict[str, Any]:
    """What `make` returns, which writes a model to `path`; where it raises one of `refusals`, the
    file says why, `say` hears it, and it stands under `unmade` in what is returned."""
    try:
        return make()
    except refusals as error:
        say(str(error))
        unmake(path, str(error))
        return {"unmade": str(error)}


def unmake(path: Path, reason: str) -> None:
    """Let a file say why there is no model in it."""
    with whole(path) as partial:
        partial.write_bytes(MARK + reason.encode())


def why_unmade(path: Path) -> str:
    """Why there is no model in a file; empty where there is one."""
    with path.open("rb") as file:
        return file.read().decode() if file.read(len(MARK)) == MARK else ""


def require_made(path: Path) -> None:
    """Raises UnmadeError where there is no model in a file, which says how to try again."""
    if reason := why_unmade(path):
        raise UnmadeError(f"{reason} (to have it tried again, remove {path})")
