"""A comparison in words: Markdown for a pull request, and a few lines for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from perseus.host.printable import printable
from perseus.peak.stats import Interval
from perseus.report.comparison.changes import PRICE, Change, changes
from perseus.report.hosts import days
from perseus.report.numbers import percent, significant
from perseus.results.compare.host_noise import FROM_AA, FROM_PRIOR, FROM_REPEATS
from perseus.results.compare.judge import NOT_COMPARABLE, SAME, VERDICTS, Judged
from perseus.results.compare.pairs import COST, OTHER_RATES, OVERALL, P95, PEAK, RATIO
from perseus.results.compare.source import Source
from perseus.results.compare.table import Comparison

WORDS = {
    PEAK: "peak",
    RATIO: "sharing ratio",
    OVERALL: "overall",
    P95: "p95 at the certified rate",
    COST: "cost",
}
UNITS = {PEAK: "/s", RATIO: "", OVERALL: "", P95: " ms", COST: " USD per million"}
COSTS = "- Prices are the same: costs go with the peaks, and stand in the CSV."
CHANGE_BETWEEN = "a host that changes between the two studies"
MOST_LINES = 5
"""Of differences that are named on the terminal."""

FAR = 10
"""Times from a ratio, and from 1, beyond which the end of its interval says nothing: studies
without repeats do not know the noise of their host, and the ends of a thousand rows at once lie
thousands of times away."""

MOST_ROWS = 100
"""Of a list in Markdown: a comment on a pull request has room for a few hundred."""


def markdown(found: Comparison) -> str:
    """The whole summary; its first lines are the answer."""
    shown = _shown(found)
    left_out = len(shown) < len(found.judged)
    compared = [each for each in shown if each.verdict != NOT_COMPARABLE]
    parts = [
        f"# {_escaped(headline(found))}",
        "\n".join([*_sentences(found, shown), *([COSTS] if left_out else [])]),
        "\n".join(_table(compared)) if compared else "",
        _left_out(len(compared)),
        "\n".join(_section("Not compared", _not_compared(_of(shown, NOT_COMPARABLE)))),
        "\n".join(_differences(found)),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def terminal(found: Comparison) -> Iterator[str]:
    """What came out, what noise it was held against, and the first of what got worse or better."""
    yield headline(found)
    different = [each for each in _shown(found) if each.verdict not in (SAME, NOT_COMPARABLE)]
    different.sort(key=lambda each: VERDICTS.index(each.verdict))
    for each in different[:MOST_LINES]:
        yield f"  {each.verdict}: {_what(each)}: {change(each.simultaneous)}"
    if len(different) > MOST_LINES:
        yield f"  and {len(different) - MOST_LINES} more"
    yield noise(found)


def headline(found: Comparison) -> str:
    """How many got worse, better, or neither."""
    counts = {verdict: len(_of(_shown(found), verdict)) for verdict in VERDICTS}
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    return f"{found.new.study} against {found.base.study}: {told}"


def _of(judged: Sequence[Judged], verdict: str) -> list[Judged]:
    return [each for each in judged if each.verdict == verdict]


def noise(found: Comparison) -> str:
    """What the intervals hold against, and what they do not know."""
    deviation = _deviations(found)
    floors = found.noise.floors
    measured = ", ".join(f"{percent(floor)} on {server}" for server, floor in floors.items())
    floor = f" Noise floor of single cells (experiment aa): {measured}." if floors else ""
    if any(map(_has_intervals_of_repeats, (found.base, found.new))) and (
        found.noise.known_from != FROM_REPEATS
    ):
        return f"{_of_tables(found)}{floor} They do not cover {CHANGE_BETWEEN}."
    if found.noise.known_from == FROM_PRIOR:
        return (
            "The noise of the host is not known: nothing was repeated, and there is no experiment"
            " aa. The intervals allow for what hosts were seen to wander by, and are wide: set"
            " measurement.repeats, or add the experiment aa."
        )
    of = "restarted servers (aa)" if found.noise.known_from == FROM_AA else "repeats"
    said = (
        f"The intervals cover what searches do not know, and what lies between {of}: {deviation}."
    )
    if not floors:
        floor = " The noise floor of the host was not measured (experiment aa)."
    return f"{said}{floor} They do not cover {CHANGE_BETWEEN}."


def _deviations(found: Comparison) -> str:
    """What lies between repeats, on the quietest and the noisiest of several servers."""
    medians = [float(np.median(draws)) for draws in found.noise.deviations.values()]
    least, most = percent(min(medians)), percent(max(medians))
    return least if least == most else f"{least} to {most}, by server"


def _has_intervals_of_repeats(source: Source) -> bool:
    """Whether its tables alone tell what lies between its repeats."""
    return bool(source.without_records and (source.tables["peaks"]["repeats_used"] > 1).any())


def _of_tables(found: Comparison) -> str:
    """What the intervals cover where no record tells of repeats, but tables do."""
    once = any((source.tables["peaks"]["repeats_used"] == 1).any()
               for source in (found.base, found.new))  # fmt: skip
    noise = "what hosts were seen to wander by"
    if found.noise.known_from == FROM_AA:
        noise = f"what lies between restarted servers (aa), {_deviations(found)}"
    return (
        "The intervals of what was repeated are those of the tables, which cover what searches do"
        " not know, and what lies between its repeats."
        + (f" Those of what was measured once, and of p95, allow for {noise}." if once else "")
    )


def _sentences(found: Comparison, shown: Sequence[Judged]) -> Iterator[str]:
    yield f"- Base: {_study(found.base)}"
    yield f"- New: {_study(found.new)}"
    yield f"- {noise(found)}"
    compared = [each for each in shown if each.verdict != NOT_COMPARABLE]
    if len(compared) > 1:
        yield (
            f"- Intervals are such that, if nothing differs, all {len(compared)} rows at once have"
            " 1 in them in 95 % of comparisons (max-t; docs/explanation/comparison.md)."
        )
    peaks = [each for each in compared if each.pair.metric == PEAK]
    if known := [each for each in peaks if np.isfinite(_reach(each.simultaneous))]:
        hidden = [np.fmax(_reach(each.simultaneous), each.pair.floor) for each in known]
        by_floor = sum(each.pair.floor > _reach(each.simultaneous) for each in known)
        of_floor = f" (the noise floor hides more than the interval of {by_floor} of {len(known)})"
        yield (
            f"- *No difference* means that none is shown: of a peak, those below about"
            f" {percent(float(np.median(hidden)))} stay hidden here{of_floor if by_floor else ''}."
        )


def _study(source: Source) -> str:
    name = f"study {_escaped(source.study)} ({_escaped(source.where)})"
    if source.without_records:
        return f"{name}; {source.without_records}, so that intervals are those of its tables"
    count = len(source.records)
    return f"{name}, {'1 cell' if count == 1 else f'{count} cells'}, {days(source.records)}"


def _shown(found: Comparison) -> list[Judged]:
    """Without costs where no price differs: they go with the peaks, and would repeat them."""
    moved = any(what.startswith(PRICE) for what, *_ in changes(found.base, found.new))
    return [each for each in found.judged if moved or each.pair.metric != COST]


def _table(compared: Sequence[Judged]) -> Iterator[str]:
    yield "| | what | base | new | new / base (95 %, all rows at once) |"
    yield "|---|---|---|---|---|"
    ordered = sorted(compared, key=lambda each: VERDICTS.index(each.verdict))
    for each in ordered[:MOST_ROWS]:
        pair = each.pair
        unit = UNITS[pair.metric]
        values = [f"{significant(value)}{unit}" for value in (pair.base.value, pair.new.value)]
        verdict = f"**{each.verdict}**" if each.verdict != SAME else SAME
        cells = (verdict, _escaped(_what(each)), *values, change(each.simultaneous))
        yield f"| {' | '.join(cells)} |"


def _left_out(rows: int) -> str:
    """What is said below so many rows."""
    if rows <= MOST_ROWS:
        return ""
    return f"The first {MOST_ROWS} of {rows}; all of them are in comparison.csv."


def change(ratio: Interval) -> str:
    """+7.2 % (+2.1 % to +12 %); an end that bounds nothing is said."""
    low = "no bound" if ratio.low < min(ratio.value, 1) / FAR else _signed(ratio.low - 1)
    high = "no bound" if ratio.high > max(ratio.value, 1) * FAR else _signed(ratio.high - 1)
    return f"{_signed(ratio.value - 1)} ({low} to {high})"


def _signed(share: float) -> str:
    return f"{'+' if share > 0 else ''}{percent(share)}"


def _reach(ratio: Interval) -> float:
    """The difference that an interval as wide would just have shown."""
    return float(np.sqrt(ratio.high / ratio.low)) - 1 if ratio.low > 0 else math.inf


def _what(each: Judged) -> str:
    """peak of squeezenet1_1 alone on cpu1"""
    pair, row = each.pair, each.pair.line.row
    if pair.metric == OVERALL:
        return f"all peaks of {row['server']} (geometric mean)"
    alone = " alone" if row["kind"] == "dedicated" else ""
    line = f"{row['mix']}{alone} on {row['server']}"
    line += "" if alone and row["load_line"] == "peak" else f" ({row['scenario']})"
    if pair.metric == P95:
        return f"{WORDS[P95]} of {pair.tenant}, {line}"
    pricing = f", {pair.pricing.replace('_', '-')}" if pair.pricing else ""
    return f"{WORDS[pair.metric]} of {line}{pricing}"


def _not_compared(judged: Sequence[Judged]) -> Iterator[str]:
    """Latencies at other rates, which go with the peaks, in one line."""
    moved = sum(each.pair.why_not.startswith(OTHER_RATES) for each in judged)
    if moved:
        what = "1 tenant" if moved == 1 else f"{moved} tenants"
        yield f"- p95 of {what}: certified {OTHER_RATES} than in the base, which the CSV has"
    for each in judged:
        if not each.pair.why_not.startswith(OTHER_RATES):
            yield f"- {_escaped(_what(each))}: {_escaped(each.pair.why_not)}"


def _section(title: str, lines: Iterable[str]) -> list[str]:
    told = list(lines)
    more = ["", left] if (left := _left_out(len(told))) else []
    return [f"## {title}", "", *told[:MOST_ROWS], *more] if told else []


def _differences(found: Comparison) -> Iterator[str]:
    yield from ("## What else differs", "")
    listed = changes(found.base, found.new)
    if not listed:
        known = found.base.records and found.new.records
        yield (
            "Nothing that the records tell: hosts, versions, settings and prices are the same."
            if known
            else "Not known: hosts, versions and settings stand in records, which are missing."
        )
        return
    yield from ("| | base | new |", "|---|---|---|", *map(_change, listed))


def _change(of: Change) -> str:
    return f"| {' | '.join(map(_escaped, of))} |"


def _escaped(text: str) -> str:
    """What a result says is text, on one line, and neither markup nor a cell's end."""
    plain = printable(" ".join(text.split()))
    for mark in "\\`*_[]<>|#~@":
        plain = plain.replace(mark, f"\\{mark}")
    return plain
