"""Escape text from files and other programs for the terminal."""

from __future__ import annotations


def printable(text: str, kept: str = "") -> str:
    """Escape all characters that are not printable, such as control codes, except `kept`."""
    return "".join(c if c.isprintable() or c in kept else repr(c)[1:-1] for c in text)
