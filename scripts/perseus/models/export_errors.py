"""Write and read export errors.

An export error is a model file with an error message in place of a model. Perseus writes an export
error in three cases:

- Perseus cannot convert a model to another precision, a program of torch.export or a TensorRT plan.
- Perseus cannot export a model that only experiments `catalogue` use.
- In a grid or an experiment `catalogue`, a model does not support the configured batches.

Any other failed export stops its job and writes no file.

Snakemake handles a file with an error message in the same way as a model file. Therefore the
measurements of other models and settings continue. In a grid and in an experiment `catalogue`, the
tables of results have the error message in place of results. In any other scenario, `require_model`
stops the job that needs the model.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from perseus.host.files import whole

HEADER: Final = b"Perseus has no model here: "

TEMPORARY_ERRORS: Final = (ImportError, MemoryError, OSError)
"""Exceptions because of the state of the machine, such as a full disk, and not because of the
neural network. A later run of the same job may succeed."""

OUT_OF_MEMORY: Final = ("can't allocate memory", "Failed to allocate memory", "bad_alloc")
"""Texts in the messages of torch, ONNX Runtime and C++ that mean too little memory."""


class NoModelError(RuntimeError):
    """Error: a model file contains an export error, which the message repeats."""


def export_or_write_error(
    export: Callable[[], dict[str, Any]],
    path: Path,
    say: Callable[[str], None],
    *refusals: type[Exception],
) -> dict[str, Any]:
    """Call `export`, which writes a model to `path`, and return its result.

    If `export` raises an exception of a type in `refusals`, the function logs the error message
    with `say`, writes the message to `path`, and returns {"export_error": message}.
    """
    try:
        return export()
    except refusals as error:
        say(str(error))
        write_export_error(path, str(error))
        return {"export_error": str(error)}


def raise_temporary(error: Exception) -> None:
    """Raise `error` or a cause of it (`__cause__`) if this exception is one of TEMPORARY_ERRORS.

    Otherwise, the function does nothing. Libraries often raise an exception of their own, whose
    cause is an error of the machine. For too little memory, torch and ONNX Runtime raise a
    RuntimeError. Therefore, if a message contains a text of OUT_OF_MEMORY, the function raises
    MemoryError.
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
    """Raise NoModelError if a model file contains an export error.

    The message says how to try the export again.
    """
    if reason := export_error(path):
        raise NoModelError(f"{reason} (to try the export again, remove {path})")
