"""Write the headlines of experiments other than searches: one sentence for each kind of experiment.
The sentence states an interval, or the number of measurements behind the result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from perseus.peak.outcome import Outcome
from perseus.report.conclusions.catalogue import COST, first_front, first_group
from perseus.report.conclusions.conclusion import Tables
from perseus.report.conclusions.repeated import runs, scenarios, tenants_of, times
from perseus.report.conclusions.replay import ARRIVALS, JUDGED, attained_text, share_text
from perseus.report.conclusions.slowdown import pairs_of
from perseus.report.conclusions.startup import is_remote
from perseus.report.numbers import bounds, counted, percent, significant, usd
from perseus.results.drift import Trend

Sentence = tuple[str, str]
"""A headline as (kind, text). The kind is one of ORDER."""

ORDER: Final = ("no", "yes", "perhaps", "unclear", "unknown")
"""Kinds of headlines, in descending order of importance: the report shows the headline whose kind
comes first."""


@dataclass(frozen=True)
class Finding:
    """A result of an experiment other than a search.

    `experiment` is the kind of the experiment, for example "soak". `kind` and `text` are the kind
    and the text of the headline. `rows` are the rows of the table from which the result follows.
    """

    experiment: str
    kind: str
    text: str
    rows: pd.DataFrame


@dataclass(frozen=True)
class Measured:
    """A measured value, and its interval or its range over the repeats, as texts."""

    value: str
    certainty: str

    def __str__(self) -> str:
        return f"{self.value} ({self.certainty})"


def finding(tables: Tables, experiments: Collection[str] = ()) -> Finding | None:
    """Return the result whose kind of headline comes first in ORDER.

    The function examines experiments of the kinds `experiments`, or of all kinds if `experiments`
    is empty. If the study has no such experiment, return None.
    """
    found = [
        Finding(experiment, *HEADLINES[experiment](on, rows), rows)
        for experiment in HEADLINES
        if not experiments or experiment in experiments
        for on, rows in _groups(experiment, tables)
    ]
    return min(found, key=lambda each: ORDER.index(each.kind)) if found else None


def measured(
    rows: pd.DataFrame,
    column: str,
    ends: tuple[str, str],
    write: Callable[[float], str] = significant,
) -> Measured:
    """Return the value of `column` with its 95 % interval. For several repeats, return the mean of
    the values with the range of the values.

    `ends` names the columns with the ends of the interval, and `write` converts a number into text.
    """
    values = rows[column].dropna()
    if values.empty:
        return Measured("\N{EN DASH}", "not known")
    if len(values) > 1:
        ends_text = bounds(values.min(), values.max(), write)
        return Measured(write(values.mean()), f"{ends_text} in {len(values)} repeats")
    row = rows.loc[values.index[0]]
    return Measured(write(row[column]), interval_text(row[ends[0]], row[ends[1]], write))


def interval_text(low: float, high: float, write: Callable[[float], str]) -> str:
    if pd.isna(low) or pd.isna(high):
        return "one run, no interval"
    low = -np.inf if low == 0 and np.isinf(high) else low
    return f"95 % interval: {bounds(low, high, write)}"


def widest(values: pd.Series, low: pd.Series, high: pd.Series) -> float:
    """Return the largest relative distance between a value and an end of its interval. The result
    is infinite if an interval has no bound, and NaN if an interval is unknown."""
    return float((np.maximum(values - low, high - values) / values).max(skipna=False))


def within(width: float) -> str:
    """Return a text that says how wide intervals are. `width` is the result of `widest`."""
    if np.isnan(width):
        return "some without an interval"
    if np.isinf(width):
        return "some intervals have no bound"
    return f"95 % intervals: at most \N{PLUS-MINUS SIGN}{percent(width)}"


def repeats(rows: pd.DataFrame) -> str:
    return counted(rows["cell"].nunique(), "repeat")


def _groups(experiment: str, tables: Tables) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield a name and the rows of the table of `experiment` for each headline.

    The kind "background" has one headline for each scenario, and the kind "catalogue" has one
    headline for the study. All other kinds have one headline for each experiment.
    """
    table = tables["knees" if experiment == "concurrency" else experiment]
    if table.empty:
        return
    if experiment == "catalogue":
        yield "", table
    else:
        yield from (scenarios if experiment == "background" else runs)(table)


def _replay(on: str, rows: pd.DataFrame) -> Sentence:
    shared = rows[rows["phase"] == "shared"]
    shared = rows if shared.empty else shared  # a replay of one tenant has only the phase `alone`
    judged = shared[shared["verdict"].isin(JUDGED) & shared["attained"].notna()]
    missed = judged[judged["verdict"] == "sla_missed"]
    under = f"under {ARRIVALS[rows['process'].iloc[0]]}"
    if judged.empty or (missed.empty and not shared["verdict"].isin(JUDGED).all()):
        return (
            "unknown",
            f"The data do not show whether {on} keeps its SLAs {under} ({repeats(rows)}).",
        )
    of = judged if missed.empty else missed
    worst = of.iloc[int((of["attained"] - of["sla_percentile"] / 100).argmin())]
    ends = interval_text(worst["attained_low"], worst["attained_high"], share_text)
    slas, is_one = _slas(of, judged), of["tenant"].nunique() == 1
    kind, keeps, least = "no", "misses", "at worst "
    if missed.empty:
        kind, keeps, least = "yes", "keeps", "at least "
    in_time = f"{'' if is_one else least}{attained_text(worst)} in time ({ends})"
    return kind, f"{on} {keeps} {slas} {under}: {in_time}."


def _slas(of: pd.DataFrame, judged: pd.DataFrame) -> str:
    names, every = tenants_of(of), tenants_of(judged)
    if len(names) == 1:
        return f"the SLA of {names[0]}"
    if len(names) < len(every):
        return f"{len(names)} of {len(every)} SLAs"
    return "both SLAs" if len(names) == 2 else f"all {len(names)} SLAs"


def _soak(on: str, rows: pd.DataFrame) -> Sentence:
    if ((rows["verdict"] == Outcome.INFEASIBLE) & (rows["windows"] > 0)).any():
        return "no", f"{on} failed under the load ({repeats(rows)})."
    seen = rows[(rows["verdict"] == Outcome.OK) & (rows["windows"] > 0)]
    if seen.empty:
        return "unknown", f"The drift of values on {on} is not known ({repeats(rows)})."
    windows = counted(int(seen.groupby("cell")["windows"].max().sum()), "window")
    failing = seen[seen["failing_from_hours"].notna()]
    if len(failing):
        row = failing.iloc[int((failing["failed_requests"] / failing["requests"]).argmax())]
        share = significant(100 * row["failed_requests"] / row["requests"])
        of = f"{row['failed_requests']:.0f} of {row['requests']:.0f}"
        return "no", f"On {on}, {share} % of the requests to {row['tenant']} failed ({of})."
    if len(grows := seen[seen["drift"] == Trend.GROWS]):
        return "no", f"On {on}, {_growth(seen, grows.iloc[0])}."
    if len(infinite := seen[seen["drift"] == Trend.INFINITE]):
        what = f"some {infinite['quantity'].iloc[0]} latencies were infinite"
        return "unclear", f"On {on}, {what}: the data do not show whether they grow ({windows})."
    if len(short := seen[seen["drift"] == Trend.UNKNOWN]):
        names = f"{len(short)} of {len(seen)} values"
        during = f"{significant(short['hours'].max())} h"
        text = f"{during} on {on} are too short to tell whether {names} grow ({windows})."
        return "unclear", text
    during = f"{significant(seen['hours'].min())} h"
    return "yes", f"No measured value grows on {on} during {during} ({windows})."


def _growth(seen: pd.DataFrame, row: pd.Series) -> str:
    """Return a text on the growth of the quantity in `row`: its change per hour in all repeats."""
    is_same = (seen["quantity"] == row["quantity"]) & (
        seen["tenant"].fillna("") == ("" if pd.isna(row["tenant"]) else row["tenant"])
    )
    slope = measured(seen[is_same], "per_hour", ("low_per_hour", "high_per_hour"))
    of = "" if pd.isna(row["tenant"]) else f" of {row['tenant']}"
    grow = "grow" if str(row["quantity"]).endswith("s") else "grows"
    return (
        f"{row['quantity']}{of} {grow} by {slope.value} {row['unit']} per hour ({slope.certainty})"
    )


def _slowdown(on: str, rows: pd.DataFrame) -> Sentence:
    pairs = list(pairs_of(rows[rows["tenant"] != rows["beside"]]))
    known = sorted((pair for pair in pairs if pair.is_known), key=lambda pair: pair.slowdown)
    infeasible = rows[rows["verdict"] == Outcome.INFEASIBLE]
    if 0 < len(infeasible) < len(rows):  # if all rows are infeasible, no server ran
        return (
            "no",
            f"{on} does not keep up with {_overload(infeasible, len(pairs))} ({repeats(rows)}).",
        )
    if not known:
        return "unknown", f"The slowdown on {on} is not known ({repeats(rows)})."
    slowed = [pair for pair in known if pair.is_slowed]
    way = max((slowed or known)[-1].ways, key=lambda each: each["slowdown"].mean())
    factor = measured(way, "slowdown", ("slowdown_low", "slowdown_high"), times)
    if not slowed:
        return "unclear", f"On {on}, no slowdown is certain: factors up to {factor}."
    if len(known) == 1:
        of, beside = way["tenant"].iloc[0], way["beside"].iloc[0]
        long = f"{factor.value} times as long beside {beside} ({factor.certainty})"
        return "unclear", f"On {on}, requests of {of} take {long}."
    slow = f"{len(slowed)} of {len(known)} pairs"
    return "unclear", f"On {on}, {slow} slow each other, by factors up to {factor}."


def _overload(infeasible: pd.DataFrame, pairs: int) -> str:
    alone = infeasible[infeasible["tenant"] == infeasible["beside"]]
    if len(alone):
        return f"{alone['tenant'].iloc[0]} alone"
    together = {frozenset(each) for each in infeasible[["tenant", "beside"]].to_numpy()}
    if pairs == 1:
        return f"{' and '.join(sorted(together.pop()))} together"
    return f"{len(together)} of {pairs} pairs"


def _startup(on: str, rows: pd.DataFrame) -> Sentence:
    started = rows[rows["ready_s"].notna()]
    if started.empty:
        return "unknown", f"The start time of {on} is not known ({repeats(rows)})."
    cache = "cold" if (started["page_cache"] == "cold").any() else "warm"
    if is_remote(started):
        seconds = start_times(started, cache, "load")
        loaded = f"{seconds.value} s ({seconds.certainty})"
        return "unclear", f"The remote server {on} loads its models in {loaded}."
    seconds = start_times(started, cache)
    ready = f"{seconds.value} s with a {cache} page cache ({seconds.certainty})"
    return "unclear", f"A fresh {on} server starts in {ready}."


def start_times(rows: pd.DataFrame, cache: str, noun: str = "start") -> Measured:
    """Return the median time in seconds until the server is ready, with the range over all starts.
    Only starts with the page cache `cache` ("cold" or "warm") count."""
    starts = rows[(rows["page_cache"] == cache) & rows["ready_s"].notna()]
    times_s = starts.drop_duplicates(["cell", "start"])["ready_s"]
    if len(times_s) == 1:
        return Measured(significant(times_s.iloc[0]), f"one {noun}")
    ends = bounds(times_s.min(), times_s.max(), significant)
    return Measured(significant(times_s.median()), f"{ends} in {len(times_s)} {noun}s")


def _concurrency(on: str, rows: pd.DataFrame) -> Sentence:
    known = rows[rows["bracketed"].astype(bool) & rows["saturated_rps"].notna()]
    if known.empty:
        return "unknown", f"The knee of {on} is not known ({repeats(rows)})."
    knee = measured(known, "knee", ("knee_low", "knee_high"))
    beyond = f"Beyond {knee.value} requests in flight ({knee.certainty})"
    return "unclear", f"{beyond}, the throughput of {on} hardly grows."


def _catalogue(_: str, rows: pd.DataFrame) -> Sentence:
    front = first_front(rows)
    if front.empty:
        cells = counted(rows["cell"].nunique(), "cell")
        return "unknown", f"The networks on the Pareto front are not known ({cells})."
    on_front = front["model"].nunique()
    networks = counted(first_group(rows)["model"].nunique(), "network")
    costs = " to ".join(dict.fromkeys(usd(front[COST].agg(end)) for end in ("min", "max")))
    sure = within(widest(front[COST], front["ci_low_usd"], front["ci_high_usd"]))
    front_text = f"The Pareto front has {on_front} of {networks}"
    return "unclear", f"{front_text}, at {costs} per million images ({sure})."


def _background(on: str, rows: pd.DataFrame) -> Sentence:
    known = rows[rows["sharing_ratio"].notna()]
    if known.empty:
        return "unknown", f"The capacity of {on} beside fixed loads is not known ({repeats(rows)})."
    low = known["sharing_ratio_low"].fillna(-np.inf).min()
    high = known["sharing_ratio_high"].fillna(np.inf).max()
    kind, effect = "unclear", "may save money or cost more"
    if (known["sharing_ratio_low"] > 1).all():
        kind, effect = "yes", "saves money"
    elif (known["sharing_ratio_high"] < 1).all():
        kind, effect = "no", "costs more than dedicated servers"
    ratio = f"sharing ratio {bounds(low or -np.inf, high, times)}, 95 %"
    return kind, f"Beside tenants at fixed rates, sharing {on} {effect} ({ratio})."


def _aa(on: str, rows: pd.DataFrame) -> Sentence:
    known = rows[rows["noise_floor"].notna()]
    if known.empty:
        return "unknown", f"The noise floor of {on} is not known ({repeats(rows)})."
    row = known.iloc[int(known["noise_floor"].argmax())]
    of = rows[rows["cell"] == row["cell"]]
    basis = f"{counted(len(of), 'start')}, {counted(int(of['windows'].sum()), 'window')}"
    below = f"differences of throughput below {percent(row['noise_floor'])}"
    return "unclear", f"On {on}, {below} may be noise of this host ({basis})."


HEADLINES: Final[dict[str, Callable[[str, pd.DataFrame], Sentence]]] = {
    "replay": _replay,
    "soak": _soak,
    "slowdown": _slowdown,
    "startup": _startup,
    "concurrency": _concurrency,
    "catalogue": _catalogue,
    "background": _background,
    "aa": _aa,
}
"""For each kind of experiment, the function that writes its headline. If several headlines are
equally important (see ORDER), the report shows the first of them in the order of these kinds."""
