"""Write the notes of the report's first screen: how certain the conclusion is, and how to make the
conclusion more certain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd

from perseus.peak.durations import expected_s
from perseus.peak.outcome import Outcome
from perseus.report.conclusions.conclusion import Tables
from perseus.report.conclusions.over_demand import all_questions, saves
from perseus.report.conclusions.servers_to_buy import SURE
from perseus.report.conclusions.sharing import QUICK
from perseus.report.headline import best_saving, cost_bounds, saving_bounds, top_fleets
from perseus.report.headlines_of_kinds import finding
from perseus.report.numbers import counted, percent
from perseus.report.shown_tables import machine_text
from perseus.results.fleets.plans import SHARING
from perseus.results.records import PeakRecord, Record
from perseus.study.presets import PRESETS

FEWEST_REPEATS: Final = 3
"""The report suggests at least this many repeats, since fewer repeats hardly show the variation
between starts of a server."""
MAX_REPEATS: Final = 20
"""The report suggests at most this many repeats to the reader."""
RESOLVED: Final = 0.03
"""If the half-width of the interval of a saving is at most this number, more repeats are not worth
their time. Such an interval distinguishes every relevant saving from 0."""
MAX_MINUTES: Final = 100
"""If a time is longer than this number of minutes, the report states the time in hours."""
UNKNOWN: Final = "The study has no result, so no interval is known."
OF_KINDS: Final = (
    "An interval covers the variation within one run. A range over several runs covers the"
    " variation between these runs. Neither covers other hosts or failures of a server."
)
FOR_A_RESULT: Final = "Measurements with the preset smoke are too short for a result."
AGAIN: Final = (
    "First solve the problems that the section Failed measurements lists. Then run `make again`."
)
ENOUGH: Final = "More repeats would make the intervals narrower."
TOO_CLOSE: Final = (
    f"Even {MAX_REPEATS} repeats would not show whether sharing saves money on full servers: the"
    " interval of the saving is too wide."
)
NO_BOUND: Final = (
    "More repeats would not show whether sharing saves money on full servers: an end of the"
    " interval of the saving is infinite."
)


@dataclass(frozen=True)
class Surer:
    """Advice on how to make the conclusion more certain.

    `setting` is a setting under the key `measurement` of the configuration, `time` is the time that
    the new measurement takes, and `gain` is a sentence on the effect. If no setting helps,
    `setting` is empty, and `gain` says why.
    """

    setting: str = ""
    time: str = ""
    gain: str = ""


def surer(tables: Tables, records: Sequence[Record]) -> Surer:
    """Return advice on how to make the conclusion more certain: more repeats, or else the preset
    standard. If neither would help, the advice says why."""
    peaks = tables["peaks"]
    if len(peaks) and (peaks["preset"] == "smoke").all():
        return Surer("preset: quick", gain=FOR_A_RESULT)
    known = _known(peaks)
    repeats = int(known["repeats"].max()) if len(known) else _repeats_of_kinds(tables)
    if not repeats:
        return Surer(gain=AGAIN)
    to_resolve = _repeats_to_resolve(best_saving(tables))
    needed = max(FEWEST_REPEATS, _repeats_of_plan(tables, repeats))
    if to_resolve <= MAX_REPEATS:
        needed = max(needed, math.ceil(to_resolve))
    if repeats < needed:
        more_s = _took_s(records) * (needed - repeats) / repeats
        gain = (
            "With repeats, the intervals cover the variation between server starts."
            if repeats < 2
            else ""
        )
        return Surer(f"repeats: {needed}", _time(more_s, "more "), gain)
    if "quick" in set(known["preset"]):
        return Surer("preset: standard", _time(_standard_s(records)))
    if to_resolve > MAX_REPEATS:
        return Surer(gain=NO_BOUND if math.isinf(to_resolve) else TOO_CLOSE)
    return Surer(gain=ENOUGH)


def _repeats_of_kinds(tables: Tables) -> int:
    """Return the number of repeats in the experiment of the headline, for a study without a peak.

    If no experiment has a result, return 0.
    """
    found = finding(tables)
    return 0 if found is None or found.kind == "unknown" else int(found.rows["repeat"].max())


def _repeats_of_plan(tables: Tables, repeats: int) -> int:
    """Return the number of repeats that the plan for the demand needs.

    If the planned servers may not suffice, return twice `repeats`. If the servers suffice, or if
    twice `repeats` exceeds MAX_REPEATS, return 0.
    """
    if tables["fleets"].empty or 2 * repeats > MAX_REPEATS:
        return 0
    enough = top_fleets(tables["fleets"])[SHARING]["probability_enough"]
    return 2 * repeats if enough < SURE else 0


def _known(peaks: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the table peaks with a measured estimate and a preset other than smoke."""
    is_measured = (peaks["verdict"] != Outcome.PREDICTED) & (peaks["preset"] != "smoke")
    return peaks[is_measured & peaks["estimate_rps"].notna()]


def _repeats_to_resolve(saving: pd.Series | None) -> float:
    """Return the number of repeats after which the interval of the saving excludes 0.

    The half-width of the interval must shrink to the distance of the saving from 0. If this
    distance is below RESOLVED, the half-width must only shrink to RESOLVED, since a smaller
    interval takes too many repeats. The function assumes that the width is proportional to
    1 / sqrt(number of repeats). If the saving is unknown, or if the interval already excludes 0,
    return 0. If the interval is infinite, return infinity.
    """
    if saving is None or not saving["ci_simultaneous_low"] <= 0 <= saving["ci_simultaneous_high"]:
        return 0
    half = (saving["ci_high"] - saving["ci_low"]) / 2
    aim = max(abs(float(saving["saving"])), RESOLVED)
    return float(saving["repeats"] * (half / aim) ** 2)


def _took_s(records: Sequence[Record]) -> float:
    """Return the time in seconds for which all cells together ran, including server starts."""
    return sum(map(_cell_s, records))


def _cell_s(record: Record) -> float:
    return (record.finished_monotonic_ns - record.started.monotonic_ns) / 1e9


def _standard_s(records: Sequence[Record]) -> float:
    """Return the time in seconds that the cells would take with the preset standard instead of
    their own preset."""
    return sum(_cell_s(record) * _times_as_long(record) for record in records)


def _times_as_long(record: Record) -> float:
    """Return how many times as long the search of a cell would take with the preset standard.

    The result is the expected time under load with the preset standard, divided by the expected
    time under load with the preset of the cell. For a cell without an estimate, return 1.
    """
    if not isinstance(record, PeakRecord) or math.isnan(record.estimate_scale):
        return 1.0
    line = zip(record.line.base_rps, record.line.direction_rps, strict=True)
    rates_rps = [base + record.estimate_scale * step for base, step in line]
    standard, own = (
        expected_s(settings, record.task.slas, rates_rps)
        for settings in (PRESETS["standard"].settings, record.task.search)
    )
    return standard / own


def _time(seconds: float, more: str = "") -> str:
    """Return a rounded-up time as text, for example "12 more minutes" or "3 hours"."""
    minutes = math.ceil(seconds / 60)
    if minutes <= MAX_MINUTES:
        return counted(minutes, f"{more}minute")
    return f"{math.ceil(minutes / 60)} {more}hours"


def coverage(tables: Tables) -> str:
    """Return a text that names the variation that intervals and probabilities cover, and the risks
    that they do not cover."""
    known = _known(tables["peaks"])
    if known.empty:
        return OF_KINDS if _repeats_of_kinds(tables) else UNKNOWN
    if (known["repeats_used"] < 2).any():
        covered, rest = "within one run", "the variation between runs on restarted servers, "
    else:
        covered, rest = "within a run and between runs on restarted servers", ""
    return (
        f"Intervals and probabilities cover the variation {covered}. They do not cover {rest}other"
        " hosts, or failures of a server."
    )


def caveats(tables: Tables) -> Iterator[str]:
    """Yield warnings about two reasons for doubt: the measured host may not be a machine with the
    stated price, and the preset quick gives only a first answer."""
    priced = tables["costs"].drop_duplicates(["instance", "accelerator", "share"])
    if len(priced) == 1:
        machine = machine_text(priced.iloc[0])
        yield f"The costs in this report use the price of {machine}."
    elif len(priced):
        yield "The costs in this report use the prices of several types of machine."
    if len(priced):
        yield "Perseus does not check whether the measured host is such a machine."
        yield "Before you buy a server, measure on a server of the type that you want to buy."
    if "quick" in set(_known(tables["peaks"])["preset"]):
        yield QUICK


def bridge(tables: Tables) -> str:
    """Return a text that explains why the saving on full servers differs from the saving at the
    demand of the headline.

    If one of the two savings is unknown, the text is empty.
    """
    where, full = _where_sharing_saves(tables), best_saving(tables)
    if not where or full is None:
        return ""
    if full["saving"] >= 0:
        best = "best mix"
        effect = f"saves {percent(full['saving'])} (95 % interval: {saving_bounds(full)})"
    else:
        best = "least costly mix"
        more = f"{percent(-full['saving'])} more than dedicated servers"
        effect = f"costs {more} (95 % interval: {cost_bounds(full)})"
    return (
        f"{where}, shared servers replace dedicated servers that are partly idle. If all servers"
        f" are full, the {best} ({_short(full)}) {effect}."
    )


def _where_sharing_saves(tables: Tables) -> str:
    if len(tables["fleets"]):
        saving = top_fleets(tables["fleets"])[SHARING]["saving"]
        return "At this demand" if saving > 1e-9 else ""
    groups = [each for each in all_questions(tables) if len(each.models) > 1]
    if not any(saves(row) for each in groups for row in each.demand_ranges):
        return ""
    return "At small demands" if all(each.shared_at_first for each in groups) else "At some demands"


def _short(saving: pd.Series) -> str:
    """Return the weights of a mix as text, or its name if the mix has no weights."""
    return str(saving["weights"] or saving["mix"])
