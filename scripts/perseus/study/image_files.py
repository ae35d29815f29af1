"""Define the allowed sizes of example images, find the image files in a folder, and read the
correct classes of labelled images."""

from __future__ import annotations

import csv
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MIN_INPUT_PX: Final = 32
MAX_INPUT_PX: Final = 1024
"""Smallest and largest height and width of the input of a network, in pixels."""

MIN_IMAGES: Final = 4  # the check of an export needs different images


MAX_IMAGES: Final = 8

MAX_EXAMPLES: Final = 32
"""Largest number of examples that Perseus reads from a file of the user. Perseus computes a
reference response for each example."""


SUFFIXES: Final = {".png", ".jpg", ".jpeg"}

LABELS: Final = "labels.csv"
"""Name of the file with the correct classes of the images in its folder."""

MAX_LABELLED: Final = 1000
"""Largest number of labelled images. Perseus stores a copy of these images for each model."""

MAX_PROBLEMS: Final = 5
"""Largest number of problems of the file LABELS that one message lists."""


@dataclass(frozen=True)
class LabelledImage:
    """The name of an image file, and the correct class of the image: the index of this class in the
    output of the network."""

    file: str
    label: int


def image_files(folder: Path) -> list[Path]:
    """Return the first MAX_IMAGES PNG and JPEG files in `folder`, in the order of their names.

    The function ignores hidden files. Raises OSError if the folder cannot be read, and ValueError
    if it has fewer than MIN_IMAGES image files.
    """
    found = sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and path.is_file()
    )
    if len(found) < MIN_IMAGES:
        raise ValueError(f"it has {len(found)} PNG or JPEG files, but needs at least {MIN_IMAGES}")
    return found[:MAX_IMAGES]


def labelled_images(folder: Path) -> list[LabelledImage]:
    """Return the images that the file LABELS in `folder` lists, in the same order; empty without
    this file.

    LABELS is a CSV file with the columns `file` and `class`. Raises OSError if the file cannot be
    read, and ValueError if the file is invalid.
    """
    path = folder / LABELS
    if not path.exists():
        return []
    found, problems = dict[str, int](), list[str]()
    with path.open(encoding="utf-8-sig", newline="") as lines:
        rows = csv.DictReader(lines)
        try:
            names = rows.fieldnames or ()
            if missing := [name for name in ("file", "class") if name not in names]:
                raise ValueError(
                    f"{LABELS} needs the columns file and class; it lacks {missing[0]!r}"
                )
            for row in rows:
                file, label = (row["file"] or "").strip(), (row["class"] or "").strip()
                if problem := _label_problem(folder, file, label, found):
                    problems.append(f"line {rows.line_num}: {problem}")
                else:
                    found[file] = int(label)
        except csv.Error as error:
            raise ValueError(f"{LABELS} is not a CSV file: {error}") from error
    if not 1 <= len(found) + len(problems) <= MAX_LABELLED:
        problems.append(
            f"{len(found) + len(problems)} rows; write at least 1 and at most {MAX_LABELLED}"
        )
    if problems:
        raise ValueError(f"{LABELS}: {'; '.join(problems[:MAX_PROBLEMS])}")
    return [LabelledImage(file, label) for file, label in found.items()]


def _label_problem(folder: Path, file: str, label: str, earlier: Container[str]) -> str:
    """Return the problem of one row of LABELS; empty if the row is valid. `earlier` contains the
    files of the earlier rows."""
    if Path(file).name != file or Path(file).suffix.lower() not in SUFFIXES:
        return f"{file!r} is not the name of a PNG or JPEG file in this folder"
    if not (folder / file).is_file():
        return f"there is no file {file!r} in this folder"
    if file in earlier:
        return f"{file!r} already has a class"
    if not (label.isascii() and label.isdigit()):
        return f"the class of {file!r} is {label!r}; write the index of an output: 0, 1, 2, ..."
    return ""
