"""Escape control codes in text from files and other programs."""

from __future__ import annotations


def printable(text: str, allowed: str = "") -> str:
    """Escape the characters that are not printable, such as control codes, except `allowed`."""
    return "".join(c if c.isprintable() or c in allowed else repr(c)[1:-1] for c in text)
