"""Write the sentences of a comparison as plain text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from perseus.peak.stats import Interval
from perseus.report.comparison.changes import PRICE, changes
from perseus.report.hosts import days
from perseus.report.numbers import percent
from perseus.results.compare.host_noise import FROM_AA, FROM_PRIOR, FROM_REPEATS
from perseus.results.compare.judge import BETTER, NOT_COMPARABLE, VERDICTS, WORSE, Judged
from perseus.results.compare.pairs import COST, OTHER_RATES, OVERALL, P95, PEAK, RATIO
from perseus.results.compare.source import Source
from perseus.results.compare.table import Comparison

NAMES = {
    PEAK: "peak",
    RATIO: "sharing ratio",
    OVERALL: "overall",
    P95: "p95 at the certified rate",
    COST: "cost",
}
UNITS = {PEAK: "/s", RATIO: "", OVERALL: "", P95: " ms", COST: " USD per million"}
COSTS = (
    "Both studies have the same prices, so a cost changes only if a peak changes. The CSV has the"
    " costs."
)
CHANGE_BETWEEN = "a host that changes between the two studies"
USUAL = "the usual changes in a host's speed"
SEARCH = "the uncertainty of each search"
FAR = 10
"""An end of an interval becomes "no bound" if the end differs both from the value and from 1 by
more than this factor. Without repeats, the noise of the host is unknown, and the simultaneous
intervals of a thousand rows are very wide."""


NOTHING_ELSE = "No difference in the records: hosts, versions, settings and prices are the same."
RECORDS_MISSING = "Not known: the records with the hosts, versions and settings are missing."


def headline(found: Comparison) -> str:
    """Return the headline: the numbers of values that are worse, better, or not different."""
    counts = {verdict: len(of(shown(found), verdict)) for verdict in VERDICTS}
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    return f"{found.new.study} against {found.base.study}: {told}"


def conclusion(found: Comparison) -> str:
    """Return a sentence that says whether the new study is worse, in at most 20 words."""
    compared = [each for each in shown(found) if each.verdict != NOT_COMPARABLE]
    worse, better = (len(of(compared, verdict)) for verdict in (WORSE, BETTER))
    count = f"{len(compared)} compared values"
    if not compared:
        return "Nothing in these two studies can be compared."
    if worse and better:
        return f"Of {count}, {worse} got worse and {better} got better."
    if worse or better:
        way = "worse" if worse else "better"
        rest = "; the others show no difference" if worse + better < len(compared) else ""
        return f"{worse or better} of {count} got {way}{rest}."
    return f"None of {count} shows a difference beyond the noise."


def of(judged: Sequence[Judged], verdict: str) -> list[Judged]:
    return [each for each in judged if each.verdict == verdict]


def noise(found: Comparison) -> str:
    """Return the sentences that say which variation the intervals include, and which variation the
    intervals leave out."""
    deviation = _deviations(found)
    floors = found.noise.floors
    measured = ", ".join(f"{percent(floor)} on {server}" for server, floor in floors.items())
    floor = f" Noise floor of single cells (experiment aa): {measured}." if floors else ""
    if any(map(_has_intervals_of_repeats, (found.base, found.new))) and (
        found.noise.known_from != FROM_REPEATS
    ):
        return f"{_of_tables(found)}{floor} The intervals do not cover {CHANGE_BETWEEN}."
    if found.noise.known_from == FROM_PRIOR:
        return (
            "The noise of the host is not known: the studies have neither repeats nor the"
            f" experiment `aa`. The intervals allow for {USUAL}, and are wide. To narrow them, set"
            " `measurement.repeats` or add the experiment `aa`."
        )
    between = "restarted servers (aa)" if found.noise.known_from == FROM_AA else "repeats"
    message = (
        f"The intervals cover {SEARCH} and the variation between {between} (standard deviation"
        f" {deviation})."
    )
    if not floors:
        floor = " The noise floor of the host was not measured (experiment aa)."
    return f"{message}{floor} The intervals do not cover {CHANGE_BETWEEN}."


def _deviations(found: Comparison) -> str:
    """Return the lowest and the highest standard deviation of all servers as text.

    A standard deviation describes the variation between repeats or restarts on a server.
    """
    medians = [float(np.median(draws)) for draws in found.noise.deviations.values()]
    least, most = percent(min(medians)), percent(max(medians))
    return least if least == most else f"{least} to {most}, depending on the server"


def _has_intervals_of_repeats(source: Source) -> bool:
    """Return whether the study has repeats but no records. If so, only the tables show the
    variation between repeats."""
    return bool(source.without_records and (source.tables["peaks"]["repeats_used"] > 1).any())


def _of_tables(found: Comparison) -> str:
    """Return sentences that say which variation the intervals include, for studies without records
    (`_has_intervals_of_repeats`)."""
    once = any((source.tables["peaks"]["repeats_used"] == 1).any()
               for source in (found.base, found.new))  # fmt: skip
    allowed = USUAL
    if found.noise.known_from == FROM_AA:
        allowed = f"the variation between restarted servers (aa), {_deviations(found)}"
    message = (
        "The intervals of repeated measurements come from the tables. These intervals cover"
        f" {SEARCH} and the variation between repeats."
    )
    of_one = f" The intervals of p95 and of measurements without repeats allow for {allowed}."
    return message + (of_one if once else "")


def sentences(found: Comparison) -> Iterator[str]:
    """Yield sentences about the compared studies, and about the variation that the intervals
    include."""
    yield f"Base: {_study(found.base)}"
    yield f"New: {_study(found.new)}"
    yield noise(found)
    of_all = shown(found)
    compared = [each for each in of_all if each.verdict != NOT_COMPARABLE]
    if len(compared) > 1:
        yield (
            f"The intervals are simultaneous for all {len(compared)} rows: if nothing differs, all"
            " intervals contain the ratio 1 in 95 % of comparisons (max-t;"
            " docs/explanation/comparison.md)."
        )
    if (least := hidden(compared)) is not None:
        known, by_floor = _known_peaks(compared)
        of_floor = f" (for {by_floor} of {len(known)} peaks, the reason is the noise floor)"
        yield (
            '"No difference" means that the data do not show a difference. If a peak changes by'
            f" less than about {percent(least)}, this comparison does not detect the"
            f" change{of_floor if by_floor else ''}."
        )
    if len(of_all) < len(found.judged):
        yield COSTS


def hidden(compared: Sequence[Judged]) -> float | None:
    """Return the smallest difference that the comparison detects for a typical peak: the median
    over all peaks with a bounded interval."""
    known, _ = _known_peaks(compared)
    reaches = [np.fmax(_reach(each.simultaneous), each.pair.floor) for each in known]
    return float(np.median(reaches)) if reaches else None


def _known_peaks(compared: Sequence[Judged]) -> tuple[list[Judged], int]:
    """Return the peaks with a bounded interval, and the number of peaks for which the noise floor
    hides larger differences than the interval hides."""
    peaks = [each for each in compared if each.pair.metric == PEAK]
    known = [each for each in peaks if np.isfinite(_reach(each.simultaneous))]
    return known, sum(each.pair.floor > _reach(each.simultaneous) for each in known)


def _study(source: Source) -> str:
    name = f"study {source.study} ({source.where})"
    if source.without_records:
        return f"{name}; {source.without_records}, so the intervals come from its tables"
    count = len(source.records)
    return f"{name}, {'1 cell' if count == 1 else f'{count} cells'}, {days(source.records)}"


def shown(found: Comparison) -> list[Judged]:
    """Return the compared values that the page shows.

    If both studies have the same prices, the page shows no costs. With the same prices, a cost
    changes only if a peak changes.
    """
    moved = any(what.startswith(PRICE) for what, *_ in changes(found.base, found.new))
    return [each for each in found.judged if moved or each.pair.metric != COST]


def change(ratio: Interval) -> str:
    """Return a change as text, for example "+7.2 % (+2.1 % to +12 %)". A very distant end
    of the interval becomes "no bound" (see FAR)."""
    low = "no bound" if ratio.low < min(ratio.value, 1) / FAR else signed(ratio.low - 1)
    high = "no bound" if ratio.high > max(ratio.value, 1) * FAR else signed(ratio.high - 1)
    return f"{signed(ratio.value - 1)} ({low} to {high})"


def signed(share: float) -> str:
    return f"{'+' if share > 0 else ''}{percent(share)}"


def _reach(ratio: Interval) -> float:
    """Return the relative half-width of an interval on a logarithmic scale. The comparison does not
    detect a difference below this half-width."""
    return float(np.sqrt(ratio.high / ratio.low)) - 1 if ratio.low > 0 else math.inf


def what(each: Judged) -> str:
    """Return the name of a compared quantity, for example "peak of squeezenet1_1 alone on cpu1"."""
    pair, row = each.pair, each.pair.line.row
    if pair.metric == OVERALL:
        return f"all peaks of {row['server']} (geometric mean)"
    alone = " alone" if row["kind"] == "dedicated" else ""
    line = f"{row['mix']}{alone} on {row['server']}"
    line += "" if alone and row["load_line"] == "peak" else f" ({row['scenario']})"
    if pair.metric == P95:
        return f"{NAMES[P95]} of {pair.tenant}, {line}"
    pricing = f", {pair.pricing.replace('_', '-')}" if pair.pricing else ""
    return f"{NAMES[pair.metric]} of {line}{pricing}"


def not_compared(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield the values that are not compared, each with the reason.

    If the two studies have different certified rates of a tenant, Perseus does not compare its
    latencies. The function yields a single line for all tenants whose certified rates differ.
    """
    moved = sum(each.pair.why_not.startswith(OTHER_RATES) for each in judged)
    if moved:
        who = "1 tenant" if moved == 1 else f"{moved} tenants"
        yield f"p95 of {who}: {OTHER_RATES} between the studies; see the CSV"
    for each in judged:
        if not each.pair.why_not.startswith(OTHER_RATES):
            yield f"{what(each)}: {each.pair.why_not}"
