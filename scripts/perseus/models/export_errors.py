"""Write and read export errors. An export error is an error message in place of a model.

The model file contains the error message if Perseus cannot convert a model (to another precision, a
program of torch.export or a TensorRT plan), or cannot export a model that only experiments
`catalogue` use. All other failed exports stop their job and write no file.

Snakemake handles a file with an error message in the same way as a model file. For an export error
in a setting of a grid or in an experiment `catalogue`, the tables of results have the error message
in place of results. The export error does not stop the measurements of other models and settings.
If the model belongs to neither a setting of a grid nor an experiment `catalogue`, `require_model`
stops the job.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from perseus.host.files import whole

HEADER: Final = b"Perseus has no model here: "

TEMPORARY_ERRORS: Final = (ImportError, MemoryError, OSError)
"""Exceptions that are due to the machine, not to the neural network. A later run of the same job
may succeed."""

OUT_OF_MEMORY: Final = ("can't allocate memory", "Failed to allocate memory", "bad_alloc")
"""Texts in the error messages of torch, ONNX Runtime and C++ about too little memory."""


class NoModelError(RuntimeError):
    """Error: a model file contains an export error. The message of this exception repeats the
    export error."""


def export_or_write_error(
    export: Callable[[], dict[str, Any]],
    path: Path,
    say: Callable[[str], None],
    *refusals: type[Exception],
) -> dict[str, Any]:
    """Call `export`, which writes a model to `path`, and return its result.

    For an exception in `refusals`, the function logs the error message with `say`, writes the
    message to `path`, and returns {"export_error": message}.
    """
    try:
        return export()
    except refusals as error:
        say(str(error))
        write_export_error(path, str(error))
        return {"export_error": str(error)}


def raise_temporary(error: Exception) -> None:
    """If an exception of a library is due to the machine, raise a matching exception of the kinds
    TEMPORARY_ERRORS. Otherwise, do nothing.

    Libraries raise their own exceptions for a temporary error, with the temporary error as cause.
    For too little memory, torch and ONNX Runtime raise a RuntimeError.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, TEMPORARY_ERRORS):
            raise cause
        if any(text in str(cause) for text in OUT_OF_MEMORY):
            raise MemoryError(f"too little memory: {str(cause).splitlines()[0]}") from error
        cause = cause.__cause__


def write_export_error(path: Path, reason: str) -> None:
    """Write an export error (the reason why a model is missing) in place of a model file."""
    with whole(path) as partial:
        partial.write_bytes(HEADER + reason.encode())


def export_error(path: Path) -> str:
    """Return the export error in a model file; empty if the file contains a model."""
    with path.open("rb") as file:
        return file.read().decode() if file.read(len(HEADER)) == HEADER else ""


def require_model(path: Path) -> None:
    """Raise NoModelError if a model file contains an export error. The message says how to try the
    export again."""
    if reason := export_error(path):
        raise NoModelError(f"{reason} (to try the export again, remove {path})")
