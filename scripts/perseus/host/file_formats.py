"""Detect truncated files. For most files, the first and last bytes are enough."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Final

from perseus.host.files import HEAD_BYTES

ENDS: Final[Mapping[str, tuple[bytes, bytes]]] = {
    ".parquet": (b"par1", b"PAR1"),
    ".png": (b"\x89png\r\n\x1a\n", b"IEND\xaeB`\x82"),
    ".svg": (b"<?xml", b"</svg>"),
    ".html": (b"<!doctype html", b"</html>"),
}
"""First bytes and last bytes of a complete file, by the suffix of its name.

The first bytes are in lower case. White space may follow the last bytes.
"""

JSON: Final = ".json"
JSON_ENDS: Final[Mapping[bytes, bytes]] = {b"{\n": b"\n}\n", b"[\n": b"\n]\n"}
"""First and last bytes of the JSON files that `host.files.write_json` writes."""

ONNX: Final = ".onnx"
MODEL_FIELDS: Final = frozenset({1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26})
"""Numbers of the fields of an ONNX model (ModelProto in github.com/onnx/onnx, onnx/onnx.proto)."""

ZIPPED: Final = (".npz", ".pt2")
ZIP: Final = b"PK\x03\x04"
ZIP_END: Final = b"PK\x05\x06"
ZIP_END_BYTES: Final = 22  # length without a comment (NumPy and torch write none)
TAIL_BYTES: Final = 64


def lacks_end(path: Path) -> bool | None:
    """Return whether a file is truncated; None if unknown.

    A file is truncated if it is empty, or if it begins with zeros (as after a loss of data on the
    disk). A file is also truncated if it begins like a complete file of its format, but does not
    end like one. The result is None for formats that this module does not know. The result is also
    None for an ONNX model that ends between two fields, because the model may be complete. Raises
    OSError if the file cannot be read.
    """
    if path.suffix not in {JSON, ONNX, *ZIPPED, *ENDS}:
        return None
    with path.open("rb") as file:
        size_bytes = os.fstat(file.fileno()).st_size
        if not any(file.read(HEAD_BYTES)):
            return True
        file.seek(0)
        if path.suffix == JSON:
            return _is_truncated_json(file, size_bytes)
        if path.suffix == ONNX:
            return _is_truncated_message(file, size_bytes) or None
        if path.suffix in ZIPPED:
            is_ours = ZIP.startswith(file.read(len(ZIP)))
            return not _has_zip_end(file, size_bytes) if is_ours else None
        head, end = ENDS[path.suffix]
        if not head.startswith(file.read(len(head)).lower()):
            return None
        return not _tail(file, size_bytes, len(head)).rstrip().endswith(end)


def _tail(file: BinaryIO, size_bytes: int, behind: int) -> bytes:
    """Return the last bytes of a file: at most TAIL_BYTES, and none of the first `behind` bytes."""
    file.seek(max(size_bytes - TAIL_BYTES, behind))
    return file.read()


def _is_truncated_json(file: BinaryIO, size_bytes: int) -> bool | None:
    """Return whether a JSON file is truncated; None if it seems not to come from `write_json`."""
    head = file.read(2)
    starts = [each for each in JSON_ENDS if each.startswith(head)]
    if not starts:
        return None
    if _tail(file, size_bytes, len(head)).endswith(JSON_ENDS[starts[0]]):
        return False
    file.seek(0)
    try:
        json.loads(file.read())
    except ValueError:
        return True
    return None


def _has_zip_end(file: BinaryIO, size_bytes: int) -> bool:
    file.seek(max(size_bytes - ZIP_END_BYTES, 0))
    return file.read().startswith(ZIP_END)


def _is_truncated_message(file: BinaryIO, size_bytes: int) -> bool:
    """Return whether an ONNX file ends in the middle of a field.

    The result is False for a file that is no ONNX model, such as a text with an export error.
    """
    try:
        while file.tell() < size_bytes:
            # https://protobuf.dev/programming-guides/encoding
            number, wire_type = divmod(_varint(file), 8)
            if number not in MODEL_FIELDS:
                return False
            match wire_type:
                case 0:
                    _varint(file)
                case 1:
                    file.seek(8, os.SEEK_CUR)
                case 2:
                    file.seek(_varint(file), os.SEEK_CUR)
                case 5:
                    file.seek(4, os.SEEK_CUR)
                case _:
                    return False
    except EOFError:
        return True
    except (ValueError, OverflowError):
        return False
    return file.tell() > size_bytes


def _varint(file: BinaryIO) -> int:
    """Return the variable-length integer of a protobuf message at the position of `file`.

    Raises EOFError if the file ends before the end of the integer. Raises ValueError if the integer
    is too long.
    """
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            raise EOFError
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    raise ValueError
