"""Define a key figure of the report's first screen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """One key figure: `value` is in large letters, and `label` and `note` are in small letters."""

    label: str
    value: str
    unit: str = ""
    note: str = ""
