"""Write the sentences of a comparison as plain text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from perseus.peak.stats import Interval
from perseus.report.comparison.changes import PRICE, changes, has_records
from perseus.report.hosts import days
from perseus.report.numbers import bounds, percent, significant
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
    "Both studies have the same prices, so a cost changes only if a peak changes. The file"
    " comparison.csv has the costs."
)
CHANGE_BETWEEN = "changes of the host between the two studies"
USUAL = "the usual changes in a host's speed"
SEARCH = "the uncertainty of each search"
FAR = 10
"""The text of a change leaves out an end of an interval that is very distant: the end differs both
from the value and from 1 by more than this factor. Such an end says nothing. It occurs if the noise
of the host is unknown and a comparison has very many rows."""


NOTHING_ELSE = "The records show no difference: hosts, versions, settings and prices are the same."
UNRECORDED = (
    "The records do not contain the settings instances, intra_op_threads, max_queue_delay_us and"
    " preferred_batch_sizes, so these settings may differ, too."
)
RECORDS_MISSING = "Not known: the records with the hosts, versions and settings are missing."


def headline(found: Comparison) -> str:
    """Return the headline: how many values are worse, better, not different or not comparable."""
    counts = {verdict: len(of(shown(found), verdict)) for verdict in VERDICTS}
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    return f"{found.new.study} against {found.base.study}: {told}"


def conclusion(found: Comparison) -> str:
    """Return a sentence of at most 20 words that says how many values are worse or better, and by
    how much the peaks changed."""
    judged = shown(found)
    total = len(ranked(judged))
    worse, better, gone = len(of(judged, WORSE)), len(of(judged, BETTER)), len(lost(judged))
    if not total:
        return "Nothing in these two studies can be compared."
    parts = []
    if worse:
        parts.append(f"{worse} of {total} values got worse{f' ({gone} lost)' if gone else ''}")
    if better:
        parts.append(f"{better} better" if worse else f"{better} of {total} values got better")
    if not parts:
        beyond = " beyond the noise" if _is_noise_known(found) else " (noise unknown)"
        parts.append(f"None of {total} values shows a difference{beyond}")
    return f"{', '.join(parts)}{_mean_change(judged)}."


def _mean_change(judged: Sequence[Judged]) -> str:
    """Return the end of a sentence: the mean change of the peaks of one server, with its interval.

    If there are several servers, the text is about the server with the worst verdict. If several
    servers have this verdict, the text is about the server with the largest change.
    """
    known = [each for each in ranked(judged) if not each.pair.lost]
    means = [each for each in known if each.pair.metric == OVERALL]
    name = "mean change of peaks" if means else "change of the peak"
    means = means or [each for each in known if each.pair.metric == PEAK]
    if not means:
        return ""
    most = min(means, key=lambda e: (VERDICTS.index(e.verdict), -abs(np.log(e.interval.value))))
    servers = {each.pair.line.row["server"] for each in known}
    where = f" on {most.pair.line.row['server']}" if len(servers) > 1 else ""
    return f"; {name}{where}: {change(most.simultaneous)}"


def verdict(each: Judged) -> str:
    """Return the verdict of a value. A lost peak counts as worse, as in the CI gate."""
    return WORSE if each.pair.lost else each.verdict


def of(judged: Sequence[Judged], wanted: str) -> list[Judged]:
    return [each for each in judged if verdict(each) == wanted]


def lost(judged: Sequence[Judged]) -> list[Judged]:
    """Return the lost peaks: the base study has the peak, but the new study has none, because the
    server failed or misses the SLA."""
    return [each for each in judged if each.pair.lost]


def ranked(judged: Sequence[Judged]) -> list[Judged]:
    """Return the values that are worse, better or not different, in this order. Lost peaks are
    first."""
    others = (each for each in judged if not each.pair.lost and each.verdict != NOT_COMPARABLE)
    return [*lost(judged), *sorted(others, key=lambda each: VERDICTS.index(each.verdict))]


def values(each: Judged) -> list[str]:
    """Return the base value and the new value with their unit, or an en dash without a value."""
    known = (each.pair.base.value, each.pair.new.value)
    unit = UNITS[each.pair.metric]
    return [significant(value) + (unit if np.isfinite(value) else "") for value in known]


def became(each: Judged) -> str:
    """Return the change of a value with its interval, or the reason why a peak is lost."""
    return f"now {each.pair.lost}" if each.pair.lost else change(each.simultaneous)


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
    if not _is_noise_known(found):
        return (
            "The noise of the host is not known: the studies have neither repeats nor the"
            f" experiment `aa`. The intervals are wide, because they allow for {USUAL}. To narrow"
            " the intervals, set `measurement.repeats` or add the experiment `aa`."
        )
    between = "restarted servers (aa)" if found.noise.known_from == FROM_AA else "repeats"
    message = (
        f"The intervals cover {SEARCH} and the variation between {between} (standard deviation"
        f" {deviation})."
    )
    if not floors:
        floor = " The noise floor of the host was not measured (experiment aa)."
    return f"{message}{floor} The intervals do not cover {CHANGE_BETWEEN}."


def _is_noise_known(found: Comparison) -> bool:
    """Return whether the noise of the host is known, because a study has repeats or an experiment
    `aa`."""
    told_by_tables = any(map(_has_intervals_of_repeats, (found.base, found.new)))
    return found.noise.known_from != FROM_PRIOR or told_by_tables


def _deviations(found: Comparison) -> str:
    """Return the lowest and the highest standard deviation of all servers as text.

    The standard deviation of a server describes the variation between its repeats or restarts.
    """
    medians = [float(np.median(draws)) for draws in found.noise.deviations.values()]
    least, most = percent(min(medians)), percent(max(medians))
    return least if least == most else f"{least} to {most}, depending on the server"


def _has_intervals_of_repeats(source: Source) -> bool:
    """Return whether a study has repeats, but its records are missing. Then only the intervals in
    its tables show the variation between repeats."""
    return bool(source.without_records and (source.tables["peaks"]["repeats_used"] > 1).any())


def _of_tables(found: Comparison) -> str:
    """Return sentences about the variation that the intervals include. The function is for studies
    with repeats whose records are missing."""
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
    """Yield sentences for the section Certainty: the compared studies, the variation that the
    intervals include, and the smallest change that the comparison detects."""
    yield f"Base: {_study(found.base)}"
    yield f"New: {_study(found.new)}"
    yield noise(found)
    of_all = shown(found)
    compared = [each for each in of_all if each.verdict != NOT_COMPARABLE]
    if len(compared) > 1:
        yield (
            f"The intervals are simultaneous for all {len(compared)} rows: if two studies do not"
            " differ, all intervals contain the ratio 1 in 95 % of comparisons (max-t;"
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
    """Return the smallest relative change of a peak that the comparison can detect.

    This change is the median over all peaks with a bounded interval. If there is no such peak,
    return None.
    """
    known, _ = _known_peaks(compared)
    reaches = [np.fmax(_reach(each.simultaneous), each.pair.floor) for each in known]
    return float(np.median(reaches)) if reaches else None


def _known_peaks(compared: Sequence[Judged]) -> tuple[list[Judged], int]:
    """Return the peaks with a bounded interval, and a number: how many of these peaks have a noise
    floor above the half-width of their interval."""
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
    """Return a change as text, for example "+7.2 % (+2.1 % to +12 %)". The text leaves out a very
    distant end of the interval (see FAR)."""
    low = -math.inf if ratio.low < min(ratio.value, 1) / FAR else ratio.low - 1
    high = math.inf if ratio.high > max(ratio.value, 1) * FAR else ratio.high - 1
    return f"{signed(ratio.value - 1)} ({bounds(low, high, signed)})"


def signed(share: float) -> str:
    return f"{'+' if share > 0 else ''}{percent(share)}"


def _reach(ratio: Interval) -> float:
    """Return the half-width of an interval as a relative change, for example 0.05. The comparison
    does not detect a smaller change. The half-width is computed on a logarithmic scale."""
    return float(np.sqrt(ratio.high / ratio.low)) - 1 if ratio.low > 0 else math.inf


def what(each: Judged) -> str:
    """Return the name of a compared quantity, for example "peak of squeezenet1_1 alone on cpu1"."""
    pair, row = each.pair, each.pair.line.row
    if pair.metric == OVERALL:
        return f"all compared peaks of {row['server']} (geometric mean)"
    alone = " alone" if row["kind"] == "dedicated" else ""
    line = f"{row['mix']}{alone} on {row['server']}"
    line += "" if alone and row["load_line"] == "peak" else f" ({row['scenario']})"
    if pair.metric == P95:
        return f"{NAMES[P95]} of {pair.tenant}, {line}"
    pricing = f", {pair.pricing.replace('_', '-')}" if pair.pricing else ""
    return f"{NAMES[pair.metric]} of {line}{pricing}"


def not_compared(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield a line for each value that Perseus does not compare, with the reason. Lost peaks have
    no line.

    Perseus does not compare the latencies of a tenant whose certified rates differ between the
    studies. The function yields a single line for all these latencies.
    """
    others = of(judged, NOT_COMPARABLE)
    moved = sum(each.pair.why_not.startswith(OTHER_RATES) for each in others)
    if moved:
        count = "1 latency" if moved == 1 else f"{moved} latencies"
        yield f"{count} (p95): {OTHER_RATES} between the studies; see comparison.csv"
    for each in others:
        if not each.pair.why_not.startswith(OTHER_RATES):
            yield f"{what(each)}: {each.pair.why_not}"


def differences_note(found: Comparison) -> str:
    """Return sentences that say whether hosts, versions, settings and prices are the same in both
    studies, and which settings are unknown."""
    if not has_records(found.base, found.new):
        return RECORDS_MISSING
    return UNRECORDED if changes(found.base, found.new) else f"{NOTHING_ELSE} {UNRECORDED}"
