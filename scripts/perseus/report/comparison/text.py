"""Write a comparison as Markdown for a pull request, and as lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from perseus.host.printable import printable
from perseus.report.comparison.changes import Change, changes
from perseus.report.comparison.sentences import (
    became,
    differences_note,
    headline,
    noise,
    not_compared,
    ranked,
    sentences,
    shown,
    values,
    verdict,
    what,
)
from perseus.results.compare.judge import SAME, Judged
from perseus.results.compare.table import Comparison

MAX_LINES = 5
"""The lines for the terminal list at most this many values that are worse or better."""

MAX_ROWS = 100
"""A list in Markdown has at most this many entries, since a comment on a pull request can have only
a few hundred lines."""


def markdown(found: Comparison) -> str:
    """Return the whole summary in Markdown, with the conclusion as its heading."""
    judged = shown(found)
    rows = ranked(judged)
    parts = [
        f"# {_escaped(headline(found))}",
        "\n".join(map(_item, sentences(found))),
        "\n".join(_table(rows[:MAX_ROWS])) if rows else "",
        _left_out(len(rows)),
        "\n".join(_section("Not compared", not_compared(judged))),
        "\n".join(_differences(found)),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def terminal(found: Comparison) -> Iterator[str]:
    """Yield the lines for the terminal: the conclusion, the first values that are worse or better,
    and the variation that the intervals cover."""
    yield headline(found)
    different = [each for each in ranked(shown(found)) if each.verdict != SAME]
    for each in different[:MAX_LINES]:
        yield f"  {verdict(each)}: {what(each)}: {became(each)}"
    if len(different) > MAX_LINES:
        yield f"  and {len(different) - MAX_LINES} more"
    yield noise(found)


def _table(rows: Sequence[Judged]) -> Iterator[str]:
    yield "| | what | base | new | change (95 % intervals for all rows at once) |"
    yield "|---|---|---|---|---|"
    for each in rows:
        marked = SAME if each.verdict == SAME else f"**{verdict(each)}**"
        cells = (marked, _escaped(what(each)), *values(each), _escaped(became(each)))
        yield f"| {' | '.join(cells)} |"


def _item(text: str) -> str:
    return f"- {_escaped(text)}"


def _left_out(rows: int) -> str:
    if rows <= MAX_ROWS:
        return ""
    return f"The first {MAX_ROWS} of {rows} lines. All lines are in comparison.csv."


def _section(title: str, lines: Iterable[str]) -> list[str]:
    told = list(map(_item, lines))
    more = ["", left] if (left := _left_out(len(told))) else []
    return [f"## {title}", "", *told[:MAX_ROWS], *more] if told else []


def _differences(found: Comparison) -> Iterator[str]:
    yield from ("## What else differs", "")
    if listed := changes(found.base, found.new):
        yield from ("| | base | new |", "|---|---|---|", *map(_change, listed), "")
    yield _escaped(differences_note(found))


def _change(of: Change) -> str:
    return f"| {' | '.join(map(_escaped, of))} |"


def _escaped(text: str) -> str:
    """Return a text on one line, with escaped Markdown marks."""
    plain = printable(" ".join(text.split()))
    for mark in "\\`*_[]<>|#~@":
        plain = plain.replace(mark, f"\\{mark}")
    return plain
