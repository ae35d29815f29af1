"""Define a key figure of the report's first screen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """A key figure. The page shows `value` in large letters, and `label` and `note` in small
    letters."""

    label: str
    value: str
    unit: str = ""
    note: str = ""
