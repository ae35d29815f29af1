"""Make the SVG files that matplotlib writes smaller."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree

SVG: Final = "http://www.w3.org/2000/svg"
LINK: Final = "{http://www.w3.org/1999/xlink}href"
HEAD: Final = '<?xml version="1.0" encoding="utf-8"?>'
PER_POINT: Final = 100
"""Coordinates are rounded to 1 / PER_POINT of a typographic point."""

NUMBERED: Final = re.compile(r".*_\d+")
"""Pattern of ids that matplotlib generates with a number. All other ids come from the code of a
figure."""

REFERENCE: Final = re.compile(r"url\(#([^)]*)\)")
SEGMENT: Final = re.compile(r"([MLQCz])([^MLQCz]*)")
PLACED: Final = re.compile(r"translate\((\S+) (\S+)\)")


def compact(svg: str) -> str:
    """Return the text of an SVG file with the same picture and fewer bytes.

    In the returned text, coordinates are relative and rounded to hundredths of a point. Ids are
    short. Comments, white space and groups without attributes are removed.
    """
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", LINK[1:].partition("}")[0])
    root = ElementTree.fromstring(svg)
    for metadata in root.findall(f"{{{SVG}}}metadata"):
        root.remove(metadata)
    names: dict[str, str] = {}
    for element in root.iter():
        _shorten(element, names)
    for element in root.iter():
        if "id" in element.attrib:
            _rename(element, names)
    _flatten(root)
    return HEAD + ElementTree.tostring(root, encoding="unicode")


def _shorten(element: ElementTree.Element, names: dict[str, str]) -> None:
    """Shorten the attributes of an element. For each id to which the element refers, add the id and
    a short replacement to `names`."""

    def short(name: str) -> str:
        return names.setdefault(name, f"a{len(names):x}")

    told = element.attrib
    if not (element.text or "").strip():
        element.text = None
    element.tail = None
    if told.get(LINK, "").startswith("#"):
        told[LINK] = f"#{short(told[LINK][1:])}"
    if "d" in told:
        told["d"] = _path(told["d"])
    if "style" in told:
        told["style"] = re.sub(r"([:;]) ", r"\1", told["style"])
    for name in told.keys() & {"style", "clip-path"}:
        told[name] = REFERENCE.sub(lambda found: f"url(#{short(found[1])})", told[name])
    if element.tag == f"{{{SVG}}}use":
        _place(told)
    elif "transform" in told:
        told["transform"] = PLACED.sub(
            lambda found: f"translate({_rounded(found[1])} {_rounded(found[2])})",
            told["transform"],
        )


def _place(told: dict[str, str]) -> None:
    """Replace the attribute `transform` of a `use` element by the shorter attributes x and y.
    Attributes with the value 0 are left out, since 0 is their default."""
    if found := PLACED.fullmatch(told.get("transform", "")):
        del told["transform"]
        told["x"], told["y"] = found.groups()
    for axis in told.keys() & {"x", "y"}:
        told[axis] = _rounded(told[axis])
        if told[axis] == "0":
            del told[axis]


def _rename(element: ElementTree.Element, names: dict[str, str]) -> None:
    """Shorten the id of an element to its replacement in `names`. If matplotlib generated the id,
    and no element refers to the id, remove the id."""
    name = element.attrib["id"]
    if name in names:
        element.attrib["id"] = names[name]
    elif NUMBERED.fullmatch(name):
        del element.attrib["id"]


def _flatten(element: ElementTree.Element) -> None:
    """Replace groups without attributes by their children."""
    kept: list[ElementTree.Element] = []
    for child in element:
        _flatten(child)
        is_plain = child.tag == f"{{{SVG}}}g" and not child.attrib
        kept += list(child) if is_plain else [child]
    element[:] = kept


def _path(path: str) -> str:
    return "".join(_segments(path))


def _segments(path: str) -> Iterator[str]:
    """Yield the segments of a path with relative coordinates. The function rounds the end points
    and then takes their differences, so that rounding errors do not add up along the path."""
    x = y = first_x = first_y = 0
    for command, numbers in SEGMENT.findall(path):
        parts = [round(PER_POINT * float(number)) for number in numbers.split()]
        relative = [part - (y if i % 2 else x) for i, part in enumerate(parts)]
        if command == "z":
            x, y = first_x, first_y
        else:
            x, y = parts[-2:]
        if command == "M":
            first_x, first_y = x, y
        if command == "L" and 0 in relative:
            across = relative[1] == 0
            yield f"{'h' if across else 'v'}{_written(relative[0 if across else 1])}"
        else:
            yield command.lower() + " ".join(map(_written, relative)).replace(" -", "-")


def _rounded(number: str) -> str:
    return _written(round(PER_POINT * float(number)))


def _written(parts: int) -> str:
    """Return a coordinate in hundredths as text in points, for example "34.5" for 3450 and ".5" for
    50."""
    text = f"{parts / PER_POINT:.2f}".rstrip("0").rstrip(".")
    return re.sub(r"^(-?)0\.", r"\1.", text)
