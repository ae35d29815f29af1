"""Cells without an answer: what the end of a run says of them, and which to measure again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from perseus.results.records import Ending


def unanswered(records: Iterable[Path]) -> dict[Path, Ending]:
    """By its record.json, how each cell ended that has none; cells that were not measured aside."""
    measured = [path for path in records if path.is_file()]
    endings = {path: Ending.model_validate_json(path.read_bytes()) for path in measured}
    return {path: ending for path, ending in endings.items() if not ending.outcome.is_answer}


def worth_again(records: Iterable[Path]) -> list[Path]:
    """Of them those whose trouble may pass; who is blocked by one of these follows it."""
    return [path for path, ending in unanswered(records).items() if ending.outcome.may_pass]


def last_words(records: Sequence[Path]) -> Iterator[str]:
    """Lines for the terminal: which cells have no answer, why, and what to do; none if all have."""
    found = unanswered(records)
    if not found:
        return
    yield f"{len(found)} of {len(records)} cells have no answer:"
    for path, ending in found.items():
        yield f"  {path.parent.name}: {ending.outcome.replace('_', ' ')}: {ending.reason}"
    if again := worth_again(found):
        yield "Measure these again, and what depends on them: make again, or your command with"
        yield f"  --forcerun {' '.join(map(str, again))}"
