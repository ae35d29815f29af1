"""Export errors: if a model cannot be exported, its file holds the error message instead.

The pipeline handles this file like a model. A setting of a grid then becomes a row with the reason,
and the other settings are measured. For a scenario of the configuration, `require_model` stops the
run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from perseus.host.files import whole

HEADER: Final = b"Perseus has no model here: "

TEMPORARY_ERRORS: Final = (ImportError, MemoryError, OSError)
"""Exceptions with a cause in the machine, not in the network: the same job may succeed later."""


class NoModelError(RuntimeError):
    """A file holds an export error instead of a model; the message is that error."""


def export_or_write_error(
    export: Callable[[], dict[str, Any]],
    path: Path,
    say: Callable[[str], None],
    *refusals: type[Exception],
) -> dict[str, Any]:
    """Return the result of `export`, which writes a model to `path`.

    If `export` raises one of `refusals`, its message is written to `path`, passed to `say`, and
    returned under the key `export_error`.
    """
    try:
        return export()
    except refusals as error:
        say(str(error))
        write_export_error(path, str(error))
        return {"export_error": str(error)}


def write_export_error(path: Path, reason: str) -> None:
    """Write a file with the reason for the missing model."""
    with whole(path) as partial:
        partial.write_bytes(HEADER + reason.encode())


def export_error(path: Path) -> str:
    """Return the export error in a model file; empty if the file holds a model."""
    with path.open("rb") as file:
        return file.read().decode() if file.read(len(HEADER)) == HEADER else ""


def require_model(path: Path) -> None:
    """Raise NoModelError if the file holds an export error; the message says how to try again."""
    if reason := export_error(path):
        raise NoModelError(f"{reason} (to have it tried again, remove {path})")
