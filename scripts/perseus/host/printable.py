"""Text of others, made fit for a terminal and a file."""

from __future__ import annotations


def printable(text: str, kept: str = "") -> str:
    """With what is no printable character written out, as what controls a terminal, but for those
    that are `kept`."""
    return "".join(c if c.isprintable() or c in kept else repr(c)[1:-1] for c in text)
