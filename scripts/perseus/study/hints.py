"""Find the known word that the user probably meant, for the hints in error messages."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def closest(word: str, known: Sequence[str]) -> str | None:
    """Return the known word that is closest to the given word; None if no word is close."""
    return next(iter(difflib.get_close_matches(word, known, n=1)), None)


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """Return a hint with the closest known word; empty if no word is close."""
    meant = closest(word, known)
    return f" (did you mean {meant!r}?)" if meant is not None else ""


def meant_or_known(word: str, known: Sequence[str]) -> str:
    """Return a hint with the closest known word. If no known word is close, return a hint with all
    known words."""
    return did_you_mean(word, known) or f" (known: {', '.join(known)})"
