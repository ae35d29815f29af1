"""Example images of a model: their sizes, and the files of a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final

MIN_INPUT_PX: Final = 32
MAX_INPUT_PX: Final = 1024
"""Least and largest height and width of an input."""

MIN_IMAGES: Final = 4  # the check of an export compares answers to different images


MAX_IMAGES: Final = 8

MAX_EXAMPLES: Final = 32
"""Largest number of examples of a user's file; each needs a reference response."""


SUFFIXES: Final = {".png", ".jpg", ".jpeg"}


def image_files(folder: Path) -> list[Path]:
    """Return the first MAX_IMAGES PNG and JPEG files of `folder`, by name, without hidden files.

    Raises OSError if the folder cannot be read, ValueError if it has fewer than MIN_IMAGES.
    """
    found = sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and path.is_file()
    )
    if len(found) < MIN_IMAGES:
        raise ValueError(f"at least {MIN_IMAGES} PNG or JPEG files are needed, not {len(found)}")
    return found[:MAX_IMAGES]
