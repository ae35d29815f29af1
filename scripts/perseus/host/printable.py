"""Escape control codes in text from files and other programs."""

from __future__ import annotations


def printable(text: str, allowed: str = "") -> str:
    """Escape each character that is not printable (for example, a control code) and not in
    `allowed`."""
    return "".join(c if c.isprintable() or c in allowed else repr(c)[1:-1] for c in text)
