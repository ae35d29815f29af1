"""Export errors: if a model cannot be exported, its file holds the error message instead.

The file goes through the pipeline as a model does, so that a setting of a grid ends as a row with
its reason while the others are measured. A scenario as it is configured stops the run
(`require_model`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from perseus.host.files import whole

HEADER: Final = b"Perseus has no model here: "

TEMPORARY_ERRORS: Final = (ImportError, MemoryError, OSError)
"""Exceptions of the machine, not of the network: the same job may succeed another time."""


class NoModelError(RuntimeError):
    """A file holds an export error instead of a model; the message is that error."""


def export_or_write_error(
    export: Callable[[], dict[str, Any]],
    path: Path,
    say: Callable[[str], None],
    *refusals: type[Exception],
) -> dict[str, Any]:
    """The result of `export`, which writes a model to `path`.

    If `export` raises one of `refusals`, its message is written to `path`, told to `say`, and
    returned under the key `export_error`.
    """
    try:
        return export()
    except refusals as error:
        say(str(error))
        write_export_error(path, str(error))
        return {"export_error": str(error)}


def write_export_error(path: Path, reason: str) -> None:
    """Write a file that says why there is no model in it."""
    with whole(path) as partial:
        partial.write_bytes(HEADER + reason.encode())


def export_error(path: Path) -> str:
    """The export error in a model file; empty if the file holds a model."""
    with path.open("rb") as file:
        return file.read().decode() if file.read(len(HEADER)) == HEADER else ""


def require_model(path: Path) -> None:
    """Raise NoModelError if the file holds an export error; the message says how to try again."""
    if reason := export_error(path):
        raise NoModelError(f"{reason} (to have it tried again, remove {path})")
