"""Define the allowed sizes of example images, and find the image files of a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final

MIN_INPUT_PX: Final = 32
MAX_INPUT_PX: Final = 1024
"""Least and largest height and width of an input in pixels."""

MIN_IMAGES: Final = 4  # the check of an export compares the responses to different images


MAX_IMAGES: Final = 8

MAX_EXAMPLES: Final = 32
"""Largest number of examples that Perseus reads from a file of the user. Perseus computes a
reference response for each example."""


SUFFIXES: Final = {".png", ".jpg", ".jpeg"}


def image_files(folder: Path) -> list[Path]:
    """Return the first MAX_IMAGES PNG and JPEG files of `folder`, sorted by name, without hidden
    files.

    Raises OSError if the folder cannot be read, and ValueError if it has fewer than MIN_IMAGES
    image files.
    """
    found = sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and path.is_file()
    )
    if len(found) < MIN_IMAGES:
        raise ValueError(f"at least {MIN_IMAGES} PNG or JPEG files are needed, not {len(found)}")
    return found[:MAX_IMAGES]
