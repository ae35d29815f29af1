"""Conclusion: by how much the tenants of a server slow each other down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from perseus.peak.outcome import Outcome
from perseus.report.conclusions.conclusion import Conclusion, Tables
from perseus.report.conclusions.repeated import over_repeats, reasons, runs, tenants_of, times, who
from perseus.report.links import to_table
from perseus.report.numbers import listed


@dataclass(frozen=True)
class SlowedPair:
    """Two tenants, and their slowdowns beside each other.

    `ways` has two parts of the table slowdown: the rows of the first tenant beside the second
    tenant, and the rows of the second tenant beside the first tenant. Each part has one row per
    repeat.
    """

    names: tuple[str, str]
    ways: tuple[pd.DataFrame, pd.DataFrame]

    @property
    def is_too_much(self) -> bool:
        """True if the server cannot keep up with both tenants."""
        return any((rows["verdict"] == Outcome.INFEASIBLE).any() for rows in self.ways)

    @property
    def is_known(self) -> bool:
        """True if the slowdowns of both tenants are known."""
        return not self.is_too_much and all(rows["slowdown"].notna().any() for rows in self.ways)

    @property
    def slowdown(self) -> float:
        """The larger slowdown of the two tenants. Each slowdown is the mean over all repeats."""
        return float(max(rows["slowdown"].mean() for rows in self.ways))

    @property
    def ends(self) -> tuple[float, float]:
        """Low and high bound of the property `slowdown`.

        The low bound of a tenant is the lowest bound of all repeats, and the high bound is the
        highest bound of all repeats. An unknown low bound counts as 0, and an unknown high bound as
        infinity. The result has the larger low bound and the larger high bound of both tenants.
        """
        return (
            float(max(rows["slowdown_low"].fillna(0).min() for rows in self.ways)),
            float(max(rows["slowdown_high"].fillna(np.inf).max() for rows in self.ways)),
        )

    @property
    def is_slowed(self) -> bool:
        """True if at least one tenant is slowed down in every repeat.

        A tenant is slowed down if the interval of its slowdown lies above 1. If the noise of the
        host is known, the slowdown must also exceed this noise.
        """
        return any(
            (rows["slowdown_low"].fillna(0) > 1).all()
            and rows["beyond_noise"].dropna().astype(bool).all()
            for rows in self.ways
        )

    @property
    def description(self) -> str:
        return listed(self.names)

    def sentence(self) -> str:
        each = (
            f"requests of {of} take"
            f" {over_repeats(rows, 'slowdown', 'slowdown_low', 'slowdown_high', times)} times as"
            " long as alone"
            for of, rows in zip(self.names, self.ways, strict=True)
        )
        return f"{self.description} beside each other: {listed(list(each))}."


def conclusions(tables: Tables) -> Iterator[Conclusion]:
    """Yield one conclusion for each `slowdown` experiment, with all its repeats."""
    for on, rows in runs(tables["slowdown"]):
        yield _conclusion(on, rows)


def _conclusion(on: str, rows: pd.DataFrame) -> Conclusion:
    behind = (to_table("slowdown"),)
    beside = rows[rows["tenant"] != rows["beside"]]
    pairs = list(pairs_of(beside))
    known = sorted((pair for pair in pairs if pair.is_known), key=lambda pair: pair.slowdown)
    # All rows are infeasible if Perseus cannot export a model with a setting of a grid. No server
    # ran in this case, so the conclusion must not say that the server does not keep up.
    is_served = (rows["verdict"] != Outcome.INFEASIBLE).any()
    too_much = list(_too_much(rows, pairs)) if is_served else []
    more = (*_of_noise(beside), *_of_sla(beside), *_missing(pairs))
    if too_much:
        headline = f"{on} does not keep up with {'; '.join(too_much)}"
        return Conclusion("no", headline, (*_ranked(known), *more), behind)
    if not known:
        headline = f"The slowdown of {who(rows)} on {on} is not known"
        return Conclusion("unknown", headline, reasons(beside), behind)
    return Conclusion("unclear", _headline(on, known), (*_ranked(known), *more), behind)


def pairs_of(beside: pd.DataFrame) -> Iterator[SlowedPair]:
    for a, b in combinations(tenants_of(beside), 2):
        of_a, of_b = (
            beside[(beside["tenant"] == of) & (beside["beside"] == other)]
            for of, other in ((a, b), (b, a))
        )
        yield SlowedPair((a, b), (of_a, of_b))


def _too_much(rows: pd.DataFrame, pairs: Sequence[SlowedPair]) -> Iterator[str]:
    """Yield the names of tenants and pairs that the server cannot keep up with."""
    infeasible = rows[rows["verdict"] == Outcome.INFEASIBLE]
    alone = tenants_of(infeasible[infeasible["tenant"] == infeasible["beside"]])
    if alone:
        yield f"{listed(alone)} alone"
    together = [pair for pair in pairs if pair.is_too_much and not {*pair.names} & {*alone}]
    if together:
        yield f"{_named(together)} together"


def _named(pairs: Sequence[SlowedPair]) -> str:
    return "; ".join(pair.description for pair in pairs)


def _headline(on: str, known: Sequence[SlowedPair]) -> str:
    """Return the headline of a conclusion. The pairs in `known` are in ascending order of their
    slowdown."""
    best, worst = known[0], known[-1]
    if best is worst:
        if best.is_slowed:
            most = times(best.slowdown)
            return f"On {on}, {best.description} slow each other down by a factor of up to {most}"
        return (
            f"On {on}, the data do not show that {best.description} slow each other down: requests"
            f" take up to {times(best.slowdown)} times as long as alone"
        )
    as_good, as_bad = _as_good(known), _as_bad(known)
    if len(as_good) == len(known):
        return (
            f"On {on}, the data do not show which pair is slowed down least: depending on the pair,"
            f" requests take {times(best.slowdown)} to {times(worst.slowdown)} times as long as"
            " alone"
        )
    if len(as_good) == len(as_bad) == 1:
        return (
            f"On {on}, {best.description} slow each other down least, and {worst.description} most"
        )
    better = min(known, key=lambda pair: pair.ends[1])
    worse = max(known, key=lambda pair: pair.ends[0])
    return (
        f"On {on}, {better.description} slow each other down significantly less than"
        f" {worse.description}"
    )


def _ranked(known: Sequence[SlowedPair]) -> Iterator[str]:
    """Yield sentences about the pairs with the least and the most slowdown, and about all pairs
    that may have the least slowdown."""
    yield from dict.fromkeys(pair.sentence() for pair in (*known[:1], *known[-1:]))
    as_good = _as_good(known)
    if len(as_good) < len(known):
        yield (
            f"According to the intervals, {len(as_good)} of {len(known)} pairs may have the least"
            f" slowdown: {_named(as_good)}."
        )


def _as_good(known: Sequence[SlowedPair]) -> list[SlowedPair]:
    """Return the pairs that may have the least slowdown: no other pair has a significantly smaller
    slowdown."""
    return [pair for pair in known if pair.ends[0] <= min(each.ends[1] for each in known)]


def _as_bad(known: Sequence[SlowedPair]) -> list[SlowedPair]:
    """Return the pairs that may have the most slowdown: no other pair has a significantly larger
    slowdown."""
    return [pair for pair in known if pair.ends[1] >= max(each.ends[0] for each in known)]


def _of_noise(beside: pd.DataFrame) -> Iterator[str]:
    told = beside["beyond_noise"].dropna()
    if len(told):
        beyond = int(told.astype(bool).sum())
        yield f"Of {len(told)} slowdowns, {beyond} exceed the noise of this host."


def _of_sla(beside: pd.DataFrame) -> Iterator[str]:
    counted = beside[beside["comparisons"] > 0]
    over = counted[counted["over_sla"] > 0]
    too_much = (beside["verdict"] == Outcome.INFEASIBLE).any()
    if len(counted) and over.empty and not too_much:
        yield "In each valid window, each tenant keeps its SLA beside the other tenant."
    for (tenant, other), rows in over.groupby(["tenant", "beside"], sort=False):
        of = f"{rows['over_sla'].sum()} of {rows['comparisons'].sum()} windows"
        yield f"Beside {other}, {tenant} fails its SLA in {of}."


def _missing(pairs: Sequence[SlowedPair]) -> Iterator[str]:
    for pair in pairs:
        for (of, other), rows in zip((pair.names, pair.names[::-1]), pair.ways, strict=True):
            if rows["slowdown"].isna().all():
                why = " ".join(reasons(rows))
                yield f"The slowdown of {of} beside {other} is not known: {why}"
