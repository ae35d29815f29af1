"""Names that several items of a list have."""

from __future__ import annotations

from collections.abc import Sequence

from perseus.study.problems import Problems, path


def duplicates(key: str, names: Sequence[str]) -> Problems:
    """An item of the section `key` that is named like one before it."""
    for i, name in enumerate(names):
        first = names.index(name)
        if first < i:
            yield (key, i, "name"), f"{name!r} is already the name of {path((key, first))}"
