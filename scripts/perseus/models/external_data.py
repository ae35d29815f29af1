"""Read external data: weights of an ONNX model that are stored in other files.

torch.onnx.export writes large weights as external data. For safety, this module reads external data
only from the folder of the ONNX file.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perseus.models.networks import ExportError
from perseus.models.onnx_export import sha256
from perseus.models.onnx_graphs import stored_tensors

if TYPE_CHECKING:
    import onnx

MISSING: Final = "does not exist"
MAX_BYTES: Final = 2**31 - 1  # largest size of a protobuf message, and so of an ONNX file


def external_files(source: Path) -> list[str]:
    """Return the paths of the files that contain the external data of an ONNX file.

    The result leaves out missing files and files outside the folder of the ONNX file. The result is
    empty if the file is not an ONNX file, or if the package onnx is not installed.
    """
    if importlib.util.find_spec("onnx") is None:
        return []
    import onnx

    try:
        model = onnx.load_model(str(source), format="protobuf", load_external_data=False)
    except Exception:  # the export of the model reports the error
        return []
    folder = source.parent
    return sorted(str(folder / each) for each in _locations(model) if not _problem(each, folder))


def require_data_beside(model: onnx.ModelProto, source: Path) -> None:
    """Raise ExportError unless Perseus can read the external data of the ONNX file `source`.

    Perseus cannot read a file that is missing or outside the folder of `source`. All files together
    must not be larger than MAX_BYTES.
    """
    size_bytes = source.stat().st_size
    for location in _locations(model):
        if problem := _problem(location, source.parent):
            todo = (
                "copy this file into the folder of the ONNX file"
                if problem == MISSING
                else "write the weights into a file in the folder of the ONNX file, with"
                " onnx.save(model, path, save_as_external_data=True)"
            )
            raise ExportError(
                f"{source} stores weights in the file {location!r}, which {problem}: {todo}"
            )
        size_bytes += (source.parent / location).stat().st_size
    if size_bytes > MAX_BYTES:
        raise ExportError(
            f"{source} and its files of external weights have {size_bytes / 1e9:.1f} GB together,"
            f" but Perseus can serve at most {MAX_BYTES / 1e9:.1f} GB per model"
        )


def load_external_data(model: onnx.ModelProto, source: Path) -> None:
    """Load external data into the model. Raises ExportError if a file cannot be read."""
    from onnx.checker import ValidationError
    from onnx.external_data_helper import load_external_data_for_model

    require_data_beside(model, source)
    try:
        load_external_data_for_model(model, str(source.parent))
    except (OSError, ValueError, ValidationError) as error:
        raise ExportError(f"{source}: its external weights cannot be read: {error}") from error


def sha256_with_data(source: Path) -> str:
    """Return one SHA-256 for an ONNX file together with its files of external data.

    Without external data, the result is the SHA-256 of the ONNX file. With external data, the
    function computes the SHA-256 of each file, and then the SHA-256 of these digests.
    """
    digests = [sha256(path) for path in (source, *map(Path, external_files(source)))]
    return (
        digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    )


def _locations(model: onnx.ModelProto) -> list[str]:
    """Return the names of the files with external data, as written in the ONNX file."""
    from onnx.external_data_helper import uses_external_data

    apart = [each for each in stored_tensors(model) if uses_external_data(each)]
    told = [{entry.key: entry.value for entry in each.external_data} for each in apart]
    return list(dict.fromkeys(each.get("location", "") for each in told))


def _problem(location: str, folder: Path) -> str:
    """Return why Perseus rejects the file `location` of external data; empty if it is accepted."""
    parts = Path(location).parts
    if Path(location).is_absolute():
        return "is an absolute path"
    if not parts or ".." in parts:
        return "is not inside the folder of the ONNX file"
    steps = [folder.joinpath(*parts[:end]) for end in range(1, len(parts) + 1)]
    if any(step.is_symlink() for step in steps):
        return "is a symbolic link or lies behind one"
    return "" if steps[-1].is_file() else MISSING
