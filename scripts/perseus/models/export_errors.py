"""Write and read export errors: if a model cannot be exported, the model file contains the error
message.

The pipeline handles this file like a model. If the model belongs to one setting of a grid, the
message appears in the row of this setting, and Perseus measures all other settings. If the model
belongs to a configured scenario, `require_model` stops the run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from perseus.host.files import whole

HEADER: Final = b"Perseus has no model here: "

TEMPORARY_ERRORS: Final = (ImportError, MemoryError, OSError)
"""Exceptions whose cause is the machine and not the network, so that the same job may succeed
later."""


class NoModelError(RuntimeError):
    """Error: a file contains an export error instead of a model. The message is the export
    error."""


def export_or_write_error(
    export: Callable[[], dict[str, Any]],
    path: Path,
    say: Callable[[str], None],
    *refusals: type[Exception],
) -> dict[str, Any]:
    """Return the result of `export`, which writes a model to `path`.

    If `export` raises one of `refusals`, the function writes the message to `path`, passes it to
    `say`, and returns it under the key `export_error`.
    """
    try:
        return export()
    except refusals as error:
        say(str(error))
        write_export_error(path, str(error))
        return {"export_error": str(error)}


def write_export_error(path: Path, reason: str) -> None:
    """Write a file with the reason why the model is missing."""
    with whole(path) as partial:
        partial.write_bytes(HEADER + reason.encode())


def export_error(path: Path) -> str:
    """Return the export error in a model file; empty if the file holds a model."""
    with path.open("rb") as file:
        return file.read().decode() if file.read(len(HEADER)) == HEADER else ""


def require_model(path: Path) -> None:
    """Raise NoModelError if the file holds an export error; the message says how to try again."""
    if reason := export_error(path):
        raise NoModelError(f"{reason} (to try the export again, remove {path})")
