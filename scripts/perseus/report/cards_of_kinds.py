"""Make the key figures of experiments other than searches. For each kind of experiment, a function
yields cards from the rows of the table of this kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

import pandas as pd

from perseus.peak.outcome import Outcome
from perseus.report.card import Card
from perseus.report.conclusions.catalogue import COST, first_front, first_group, short_name
from perseus.report.conclusions.repeated import times
from perseus.report.conclusions.replay import attained_text, share_text
from perseus.report.headlines_of_kinds import (
    Finding,
    Measured,
    interval_text,
    measured,
    start_times,
)
from perseus.report.numbers import counted, percent, significant, usd
from perseus.report.shown_tables import plain_words

RATE: Final = "requests/s"
LEVEL_STEP: Final = 5
"""Cards of a catalogue name the cheapest network above an accuracy. This accuracy is a multiple of
LEVEL_STEP percentage points."""
PHASES: Final = {"shared": "together", "alone": "alone"}
STARTS: Final = {
    "startup": "medians and ranges of the starts",
    "aa": "95 % intervals over the starts",
}
"""Notes on certainty, by kind of experiment. A cell of these kinds starts a server several
times."""


def cards_of_kinds(finding: Finding, most: int) -> list[Card]:
    """Return at most `most` cards for the result of an experiment. The last card states how sure
    the result is."""
    values = list(islice(CARDS[finding.experiment](finding.rows), most - 1))
    if len(values) > 1:
        return [*values, _how_sure(finding)]
    cells = finding.rows.drop_duplicates("cell")
    number = "no result" if finding.kind == "unknown" else counted(len(cells), "run")
    return [*values, *outcomes(cells, "runs"), Card("How sure", number)]


def outcomes(rows: pd.DataFrame, noun: str) -> Iterator[Card]:
    """Yield two cards in place of missing results: the number of rows with the verdict `ok`, and
    the most frequent verdict. `noun` is the noun for a row, for example "runs"."""
    verdicts = rows["verdict"].value_counts()
    if len(verdicts):
        yield Card(
            "Verdict ok", str((rows["verdict"] == Outcome.OK).sum()), f"of {len(rows)} {noun}"
        )
        frequent = plain_words(str(verdicts.index[0]))
        yield Card("Most frequent verdict", frequent, note=f"{verdicts.iloc[0]} of {len(rows)}")


def _how_sure(finding: Finding) -> Card:
    rows = finding.rows
    if finding.experiment in STARTS:
        key = ["cell", "page_cache", "start"] if "start" in rows else ["cell", "restart"]
        starts = len(rows.drop_duplicates(key))
        unit = "start" if starts == 1 else "starts"
        return Card("How sure", str(starts), unit, STARTS[finding.experiment])
    runs = counted(rows["cell"].nunique(), "run")
    if rows["repeat"].nunique() == 1:
        return Card("How sure", "95 %", "intervals", runs)
    repeats = str(rows["repeat"].nunique())
    return Card("How sure", repeats, "repeats", "of each experiment")


def _card(label: str, value: Measured, unit: str = "") -> Card:
    return Card(label, value.value, unit, value.certainty)


def _replay(rows: pd.DataFrame) -> Iterator[Card]:
    known = rows[rows["attained"].notna()]
    for phase, how in PHASES.items():
        of = known[known["phase"] == phase]
        if len(of):
            row = of.iloc[int((of["attained"] - of["sla_percentile"] / 100).argmin())]
            ends = interval_text(row["attained_low"], row["attained_high"], share_text)
            asked = f"SLA: {row['sla_percentile']:g} % within {row['sla_ms']:g} ms"
            label = f"{row['tenant']} {how}, in time"
            yield Card(label, attained_text(row), note=f"{ends}; {asked}")
    if len(minutes := known[known["worst_minute_attained"].notna()]):
        worst = minutes.iloc[int(minutes["worst_minute_attained"].argmin())]
        share = share_text(worst["worst_minute_attained"])
        how = PHASES[worst["phase"]]
        yield Card(f"{worst['tenant']} in the worst minute", share, "in time", how)
    recovery_s = known["worst_recovery_s"].max()
    if math.isinf(recovery_s):
        yield Card("Longest recovery", "none", note="not before the window ended")
    elif pd.notna(recovery_s):
        yield Card("Longest recovery", significant(recovery_s), "s", "after a burst")


def _soak(rows: pd.DataFrame) -> Iterator[Card]:
    seen = rows[rows["windows"] > 0]
    if seen.empty:
        return
    yield Card("Under load", significant(seen["hours"].max()), "h")
    if requests := seen["requests"].sum():
        failed = seen["failed_requests"].sum()
        yield Card("Requests", f"{requests:.0f}", note=f"{failed:.0f} failed")
    if len(late := seen[seen["exceedance"].notna()]):
        row = late.iloc[int((late["exceedance"] / late["allowed"]).argmax())]
        allowed = f"the SLA allows {percent(row['allowed'])}"
        yield Card(f"Late requests of {row['tenant']}", percent(row["exceedance"]), note=allowed)
    if len(memory := seen[(seen["quantity"] == "memory") & seen["per_hour"].notna()]):
        slope = measured(memory, "per_hour", ("low_per_hour", "high_per_hour"))
        yield _card("Growth of the memory", slope, "MB per hour")


def _slowdown(rows: pd.DataFrame) -> Iterator[Card]:
    beside = rows[(rows["tenant"] != rows["beside"]) & rows["slowdown"].notna()]
    ways = [of for _, of in beside.groupby(["tenant", "beside"], sort=False)]
    ways.sort(key=lambda of: of["slowdown"].mean(), reverse=True)
    for of in ways if len(ways) <= 2 else (ways[0], ways[-1]):
        factor = measured(of, "slowdown", ("slowdown_low", "slowdown_high"), times)
        yield _card(
            f"{of['tenant'].iloc[0]} beside {of['beside'].iloc[0]}", factor, "times as long"
        )
    if len(ways):
        windows = f"of {beside['comparisons'].sum():.0f} windows"
        yield Card("SLA missed", f"{beside['over_sla'].sum():.0f}", windows)


def _startup(rows: pd.DataFrame) -> Iterator[Card]:
    started = rows[rows["ready_s"].notna()]
    for cache in started["page_cache"].drop_duplicates():
        yield _card(f"Start, {cache} page cache", start_times(started, cache), "s")
    if len(started):
        yield Card("Slowest start", significant(started["ready_s"].max()), "s")
    first, later = (started[f"{which}_inference_ms"].median() for which in ("first", "steady"))
    if pd.notna(first) and pd.notna(later):
        yield Card("First request", significant(first), "ms", f"later: {significant(later)} ms")


def _concurrency(rows: pd.DataFrame) -> Iterator[Card]:
    known = rows[rows["bracketed"].astype(bool) & rows["saturated_rps"].notna()]
    if len(known):
        knee = measured(known, "knee", ("knee_low", "knee_high"))
        yield _card("Knee", knee, "requests in flight")
        for label, name in (("Full server", "saturated"), ("One request in flight", "single")):
            ends = f"{name}_low_rps", f"{name}_high_rps"
            yield _card(label, measured(known, f"{name}_rps", ends), RATE)


def _catalogue(rows: pd.DataFrame) -> Iterator[Card]:
    """Yield cards of networks on the Pareto front: the cheapest network, the cheapest networks
    above two accuracies, and the most accurate network."""
    front = first_front(rows)
    if front.empty:
        return
    labels = {}
    top = math.ceil(front["accuracy"].iloc[-1] / LEVEL_STEP) * LEVEL_STEP
    for level in (top - 2 * LEVEL_STEP, top - LEVEL_STEP):
        labels[(front["accuracy"] >= level).idxmax()] = f"Cheapest with at least {level} % accuracy"
    labels[front.index[-1]] = "Most accurate on the Pareto front"
    labels[front.index[0]] = "Cheapest on the Pareto front"
    for index, row in front.iterrows():
        if index in labels:
            yield Card(labels[index], usd(row[COST]), "per million images", short_name(row))
    networks = f"of {first_group(rows)['model'].nunique()} networks"
    yield Card("On the Pareto front", str(front["model"].nunique()), networks)


def _background(rows: pd.DataFrame) -> Iterator[Card]:
    known = rows[rows["sharing_ratio"].notna()]
    if known.empty:
        return
    row = known.iloc[[int(known["sharing_ratio"].argmax())]]
    beside = f"{row['background_tenants'].iloc[0]} ({row['background_at'].iloc[0]})"
    peak = measured(row, "peak_rps", ("peak_low_rps", "peak_high_rps"))
    yield _card(f"{row['searched'].iloc[0]} beside {beside}", peak, RATE)
    share = measured(row, "share", ("share_low", "share_high"), percent)
    yield _card("Share of its dedicated peak", share)
    ends = "sharing_ratio_low", "sharing_ratio_high"
    yield _card("Sharing ratio", measured(row, "sharing_ratio", ends, times))


def _aa(rows: pd.DataFrame) -> Iterator[Card]:
    known = rows[rows["noise_floor"].notna()]
    if known.empty:
        return
    row = known.iloc[[int(known["noise_floor"].argmax())]]
    floor = percent(row["noise_floor"].iloc[0])
    yield Card("Noise floor", floor, note="smaller differences may be noise")
    for name in ("windows", "restarts"):
        deviation = measured(row, f"between_{name}", (f"{name}_low", f"{name}_high"), percent)
        yield _card(f"Deviation between {name}", deviation)


CARDS: Final[dict[str, Callable[[pd.DataFrame], Iterator[Card]]]] = {
    "replay": _replay,
    "soak": _soak,
    "slowdown": _slowdown,
    "startup": _startup,
    "concurrency": _concurrency,
    "catalogue": _catalogue,
    "background": _background,
    "aa": _aa,
}
"""For each kind of experiment, the function that yields its cards."""
