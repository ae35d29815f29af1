"""What copies of a model save on full servers, in words; they are there to predict other mixes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from perseus.report.answers.answer import Answer, Tables
from perseus.report.answers.sharing import of_scenarios
from perseus.report.links import MOST_LINES, PEAKS, to_section

SAID: Final = {
    "yes": "should share",
    "perhaps": "would probably gain",
    "no": "should not share",
    "unclear": "too close to tell",
    "unknown": "no saving known",
}
"""What is said of one model's copies, by the kind of its answer."""


def answers(tables: Tables) -> Iterator[Answer]:
    """Of the scenarios whose tenants all have one model: one answer for all."""
    each = list(of_scenarios(tables, copies=True))
    if len(each) > 1:
        yield _of_all(each)
    else:
        yield from each


def _of_all(each: Sequence[Answer]) -> Answer:
    kinds = Counter(answer.kind for answer in each)
    said = ", ".join(f"{SAID[kind]} {n} of {len(each)}" for kind, n in kinds.most_common())
    lines = dict.fromkeys(link for answer in each for link in answer.behind)
    return Answer(
        next(iter(kinds)) if len(kinds) == 1 else "unclear",
        f"Copies of one model on a server: {said}",
        tuple(f"{answer.headline}." for answer in each),
        tuple(lines) if len(lines) <= MOST_LINES else (to_section(PEAKS),),
    )
