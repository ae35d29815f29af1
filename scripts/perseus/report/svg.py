"""SVG files as matplotlib writes them, in fewer bytes."""

from __future__ import annotations

import re
from typing import Final

PATHS: Final = re.compile(r' d="([^"]*)"')
PLACES: Final = re.compile(r' (x|y)="(-?\d+\.\d{3,})"')
NUMBERS: Final = re.compile(r"-?\d+\.\d{3,}")
COMMANDS: Final = re.compile(r"\s*([A-Za-z])\s*")


def compact(svg: str) -> str:
    """The same picture: coordinates to a hundredth of a point, no space between elements."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = PATHS.sub(lambda found: f' d="{_path(found[1])}"', svg)
    svg = PLACES.sub(lambda found: f' {found[1]}="{_rounded(found[2])}"', svg)
    return re.sub(r">\s+<", "><", svg)


def _path(path: str) -> str:
    numbers = NUMBERS.sub(lambda found: _rounded(found[0]), path.strip())
    return COMMANDS.sub(r"\1", numbers).replace("\n", " ")


def _rounded(number: str) -> str:
    return f"{round(float(number), 2) + 0.0:.2f}".rstrip("0").rstrip(".")  # no -0
