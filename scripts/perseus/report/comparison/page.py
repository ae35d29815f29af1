"""Write the HTML page of a comparison of two studies: first the conclusion, key figures and a
picture, then every compared value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from perseus.report.charts import GREY, Chart, Series
from perseus.report.comparison import sentences
from perseus.report.comparison.changes import changes
from perseus.report.headline import Headline
from perseus.report.key_figures import MAX_CARDS, Card
from perseus.report.numbers import percent
from perseus.report.shown_tables import MAX_ROWS, Entry, ShownTable
from perseus.report.templating import data_url, environment
from perseus.results.compare.judge import BETTER, SAME, WORSE, Judged
from perseus.results.compare.pairs import OVERALL, PEAK
from perseus.results.compare.table import Comparison

COLOURS: Final = {WORSE: "#D55E00", BETTER: "#0072B2", SAME: GREY}
"""Colour of each verdict, as in the figure."""


def render(found: Comparison, svg: bytes) -> str:
    """Return the HTML of the page; all text from the results is escaped."""
    judged = sentences.shown(found)
    ranked = sentences.ranked(judged)
    compared = [each for each in ranked if not each.pair.lost]
    listed = changes(found.base, found.new)
    return (
        environment()
        .get_template("comparison.html")
        .render(
            base=found.base,
            new=found.new,
            headline=Headline(_kind(judged), sentences.conclusion(found)),
            cards=[*_lost(sentences.lost(judged)), *_cards(compared)][:MAX_CARDS],
            figure={"name": "comparison", "data": data_url(svg), "files": "comparison.csv"},
            charts=list(_charts(compared)),
            sentences=list(sentences.sentences(found)),
            values=_values(ranked),
            not_compared=list(sentences.not_compared(judged)),
            differences=_differences(listed) if listed else None,
            differences_note=sentences.differences_note(found),
        )
    )


def _kind(judged: list[Judged]) -> str:
    verdicts = set(map(sentences.verdict, judged))
    if WORSE in verdicts:
        return "no"
    return "yes" if BETTER in verdicts else "unclear"


def _lost(lost: list[Judged]) -> Iterator[Card]:
    """If peaks are lost, yield a card with their number and the name of the first lost peak."""
    for each in lost[:1]:
        more = f", and {len(lost) - 1} more" if len(lost) > 1 else ""
        note = f"{sentences.what(each)}: {sentences.became(each)}{more}"
        yield Card("Lost peaks", str(len(lost)), note=note)


def _cards(compared: list[Judged]) -> Iterator[Card]:
    """Yield the key figures: the mean change of the peaks on a server, the largest loss, the
    largest gain, and the smallest change that the comparison detects."""
    overall = [each for each in compared if each.pair.metric == OVERALL]
    for each in overall[:2]:
        server = each.pair.line.row["server"]
        yield _card(f"All compared peaks of {server}", each)
    for verdict, label in ((WORSE, "Largest loss"), (BETTER, "Largest gain")):
        mine = [e for e in compared if e.verdict == verdict and e.pair.metric != OVERALL]
        if mine:
            most = max(mine, key=lambda each: abs(np.log(each.simultaneous.value)))
            yield _card(f"{label}: {sentences.what(most)}", most)
    if (least := sentences.hidden(compared)) is not None:
        note = "the comparison does not detect smaller changes of a peak"
        yield Card("Smallest detectable change", percent(least), note=note)


def _card(label: str, each: Judged) -> Card:
    value, _, interval = sentences.change(each.simultaneous).partition(" (")
    return Card(label, value, note=f"{interval.rstrip(')')} (95 %)")


def _charts(compared: list[Judged]) -> Iterator[Chart]:
    """Yield a chart of the new peaks over the base peaks, if there are peaks to compare."""
    peaks = [each for each in compared if each.pair.metric == PEAK]
    if not peaks:
        return
    most = max(max(each.pair.base.value, each.pair.new.value) for each in peaks)
    series = [Series("no change", [0, most], [0, most], GREY, "dashed")]
    for verdict, colour in COLOURS.items():
        mine = [each for each in peaks if each.verdict == verdict]
        if mine:
            x, y = ([getattr(e.pair, of).value for e in mine] for of in ("base", "new"))
            names = [f"{sentences.what(e)}, {sentences.change(e.simultaneous)}" for e in mine]
            series.append(Series(verdict, x, y, colour, "large", names))
    title = "Peaks of both studies: above the dashed line, the new peak exceeds the base peak"
    axes = "base (requests/s)", "new (requests/s)"
    yield Chart("peaks-compared", title, *axes, series, from_zero=True)


def _values(ranked: list[Judged]) -> ShownTable:
    rows = []
    for each in ranked[:MAX_ROWS]:
        text = sentences.became(each)
        value, _, interval = (text, "", "") if each.pair.lost else text.partition(" (")
        rows.append(
            [
                Entry(sentences.verdict(each)),
                Entry(sentences.what(each)),
                *map(Entry, sentences.values(each)),
                Entry(value, f"({interval}" if interval else ""),
            ]
        )
    return ShownTable(
        title="Every value",
        note="Change from base to new. The 95 % intervals are valid for all rows at once.",
        columns=("verdict", "what", "base", "new", "change"),
        rows=rows,
        total=len(ranked),
        empty="Nothing can be compared.",
    )


def _differences(listed: list[tuple[str, str, str]]) -> ShownTable:
    rows = [[Entry(text) for text in each] for each in listed[:MAX_ROWS]]
    return ShownTable("What else differs", "", ("what", "base", "new"), rows, total=len(listed))
