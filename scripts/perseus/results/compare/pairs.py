"""Pair each quantity of a base study, such as the peak of a load line, with the same quantity of a
new study.

Each pair has random draws of the ratio new / base, which express its uncertainty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd

from perseus.peak.between_repeats import Group, deviation_draws_of_each
from perseus.peak.outcome import Outcome
from perseus.peak.stats import Floats, Interval
from perseus.results.columns import written
from perseus.results.compare.host_noise import HostNoise
from perseus.results.compare.lines import ComparedLine, LineKey
from perseus.results.repeats import NOTHING, Quantity
from perseus.results.slowdowns import closed

PEAK, RATIO, OVERALL, P95, COST = "peak", "sharing_ratio", "overall", "p95", "cost"
UNITS: Final = {OVERALL: "", PEAK: "requests/s", RATIO: "", P95: "ms", COST: "USD per million"}
HIGHER_IS_BETTER: Final = {OVERALL: True, PEAK: True, RATIO: True, P95: False, COST: False}

RATES_ALIKE: Final = 0.05
"""Perseus measures a p95 latency at the certified rate. It compares the p95 latencies of two
studies only if their certified rates differ by at most the share RATES_ALIKE. A p95 rises several
times as fast as the rate, so a larger difference between the rates could explain the difference
between the latencies."""

OTHER_RATES: Final = "the certified rates differ"


@dataclass(frozen=True)
class ComparedPair:
    """The values of one quantity in the base study and in the new study, with draws.

    `repeats` has the number of repeats in the base study and in the new study. `floor` is the noise
    floor: in only 5 % of cases, two measurements of the same configuration differ by more than this
    share; NaN if unknown. `why_not` is the reason why the values are not comparable; otherwise
    empty. If the base study found a limit and, because of the server, the new study found none,
    `lost` is the reason; otherwise empty.
    """

    metric: str
    line: ComparedLine
    base: Quantity
    new: Quantity
    repeats: tuple[int, int]
    floor: float = np.nan
    tenant: str = ""
    pricing: str = ""
    why_not: str = ""
    lost: str = ""

    @cached_property
    def ratio(self) -> Quantity:
        """The ratio new / base with draws. If the values are not comparable, the ratio is NaN and
        has no draws."""
        return NOTHING if self.why_not else self.new.over(self.base)


def pairs(
    base: Mapping[LineKey, ComparedLine],
    new: Mapping[LineKey, ComparedLine],
    noise: HostNoise,
    rng: np.random.Generator,
) -> list[ComparedPair]:
    """Return all pairs of values of two studies, sorted by metric in the order of UNITS.

    If only one study has a load line, the load line gives one pair, and its values are not
    comparable.
    """
    found: list[ComparedPair] = []
    deviations = _p95_deviations([*base.values(), *new.values()], rng, noise.draws)
    for key in dict.fromkeys([*base, *new]):
        if key not in base or key not in new:
            mine, others = (base, new) if key in base else (new, base)
            found.append(_only_in_one(mine[key], "base" if key in base else "new", others))
            continue
        made = _peak(base[key], new[key], noise, rng)
        found.append(made)
        if not made.why_not:
            found += _ratio(made, base[key], new[key], noise, rng)
            of_server = deviations[base[key].row["server"]]
            found += _p95s(base[key], new[key], of_server, rng)
            found += _costs(made, base[key], new[key])
    found += _overall([pair for pair in found if pair.metric == PEAK and not pair.why_not])
    return sorted(found, key=lambda pair: list(UNITS).index(pair.metric))


def _only_in_one(
    line: ComparedLine, where: str, others: Mapping[LineKey, ComparedLine]
) -> ComparedPair:
    same = [preset for *of, preset in others if of == list(line.key[:2])]
    which = f", with preset {line.key[2]}; the other study has preset {same[0]}" if same else ""
    value, why_not = _without_draws(line), f"only in {where}{which}"
    if where == "base":
        return ComparedPair(PEAK, line, value, NOTHING, (line.repeats, 0), why_not=why_not)
    return ComparedPair(PEAK, line, NOTHING, value, (0, line.repeats), why_not=why_not)


def _without_draws(line: ComparedLine) -> Quantity:
    return replace(NOTHING, value=float(line.row["estimate_rps"]))


def _peak(
    base: ComparedLine, new: ComparedLine, noise: HostNoise, rng: np.random.Generator
) -> ComparedPair:
    """Return the peak of a load line in both studies: a weighted sum of the tenants' rates.

    In a mix, the tenants' rates are in proportion to their measured dedicated peaks. An error of a
    dedicated peak changes this proportion and thus the total rate. It hardly changes the sum with
    the weights from `_weights`. The function multiplies both sums by the same factor, which turns
    the sum of the base study into the total rate of the base study in requests/s.
    """
    repeats = base.repeats, new.repeats
    values = _without_draws(base), _without_draws(new)
    if predicted_record := _where_predicted(base, new):
        return ComparedPair(PEAK, base, *values, repeats, why_not=predicted_record)
    if differs := _what_differs(base, new):
        return ComparedPair(PEAK, base, *values, repeats, why_not=differs)
    if unknown := _who_has_no_estimate(base, new):
        lost = "" if base.why_unknown else new.why_lost
        return ComparedPair(PEAK, base, *values, repeats, why_not=unknown, lost=lost)
    weights = _weights(base, new)
    of_base, of_new = (line.total_rps(weights, rng, noise) for line in (base, new))
    unit = float(base.row["estimate_rps"]) / of_base.value
    floor = noise.floor(base.row["server"], repeats)
    return ComparedPair(PEAK, base, of_base.times(unit), of_new.times(unit), repeats, floor)


def _where_predicted(base: ComparedLine, new: ComparedLine) -> str:
    """Return a message if a study predicted the peak of a load line; empty if both measured it.

    Perseus computes a predicted peak from measured load lines. The comparison already contains
    these load lines, so a predicted peak adds no evidence.
    """
    where = {"base": base, "new": new}
    told = [name for name, of in where.items() if of.row["verdict"] == Outcome.PREDICTED]
    return f"predicted, not measured, in {' and '.join(told)}" if told else ""


def _what_differs(base: ComparedLine, new: ComparedLine) -> str:
    for fact, value in base.facts.items():
        if new.facts.get(fact, value) != value:
            return f"{fact}: {value} in base, {new.facts[fact]} in new"
    return ""


def _who_has_no_estimate(base: ComparedLine, new: ComparedLine) -> str:
    unknown = {"base": base.why_unknown, "new": new.why_unknown}
    return "; ".join(f"no estimate in {where} ({why})" for where, why in unknown.items() if why)


def _weights(base: ComparedLine, new: ComparedLine) -> Floats | float:
    """Return the weight of each tenant: 1 / (its dedicated peak in the base study).

    All weights are 1 in three cases: the load line has only one tenant, a study has no records, or
    a dedicated peak is unknown.
    """
    if base.peak is None or new.peak is None or base.peak.is_dedicated:
        return 1.0
    alone = [base.peak.records[0].dedicated_rps.get(name, np.nan) for name in base.peak.tenants]
    weights = 1 / np.array(alone)
    return weights if np.isfinite(weights).all() else 1.0


def _ratio(
    made: ComparedPair,
    base: ComparedLine,
    new: ComparedLine,
    noise: HostNoise,
    rng: np.random.Generator,
) -> Iterator[ComparedPair]:
    if base.row["kind"] == "dedicated":
        return
    of_base, of_new = (line.sharing_ratio(rng, noise) for line in (base, new))
    known = of_base.is_known and of_new.is_known
    why_not = "" if known else "dedicated peaks are missing in base or new"
    yield ComparedPair(RATIO, base, of_base, of_new, made.repeats, made.floor, why_not=why_not)


def _p95_deviations(
    found: list[ComparedLine], rng: np.random.Generator, draws: int
) -> dict[str, Floats]:
    """Return how much the p95 latencies on each server vary between repeats: draws of the standard
    deviation of their logarithm.

    Between repeats, a p95 latency varies more than a peak. `HostNoise.deviations` describes peaks,
    and would therefore be too small.
    """
    groups: dict[str, list[Group]] = {line.row["server"]: [] for line in found}
    for line in found:
        of_tenants = (_p95_group(rows) for _, rows in line.tenants.groupby("tenant"))
        groups[line.row["server"]] += [each for each in of_tenants if len(each[0]) > 1]
    return deviation_draws_of_each(groups, rng, draws)


def _p95_group(rows: pd.DataFrame) -> Group:
    """Return the logarithm of a tenant's p95 latency in each repeat, and the variance of each
    logarithm. `rows` has one row of the table `tenants` per repeat."""
    known = rows.dropna(subset=["p95_ms", "p95_low_ms"])
    known = known[(known["p95_low_ms"] > 0) & np.isfinite(known["p95_ms"])]
    columns = zip(known["p95_ms"], known["p95_low_ms"], known["p95_high_ms"], strict=True)
    ends = [closed(Interval(*(np.inf if np.isnan(x) else x for x in each))) for each in columns]
    errors = [each.log_deviation for each in ends]
    return np.log(known["p95_ms"].to_numpy(dtype=float)), np.square(np.array(errors))


def _p95s(
    base: ComparedLine, new: ComparedLine, deviations: Floats, rng: np.random.Generator
) -> Iterator[ComparedPair]:
    others = dict(tuple(new.tenants.groupby("tenant", sort=False)))
    for tenant, rows in base.tenants.groupby("tenant", sort=False):
        rates = [float(each["rate_rps"].mean()) for each in (rows, others[tenant])]
        if 0.0 in rates:
            continue
        groups = [_p95_group(each) for each in (rows, others[tenant])]
        of_base, of_new = (_p95(each, deviations, rng) for each in groups)
        why_not = ""
        if not all(len(logs) for logs, _ in groups):
            why_not = "no certified rate in one of the studies"
        elif abs(np.log(rates[1] / rates[0])) > np.log1p(RATES_ALIKE):
            in_base, in_new = map(written, rates)
            why_not = f"{OTHER_RATES}: {in_base} requests/s in base, {in_new} requests/s in new"
        repeats = len(groups[0][0]), len(groups[1][0])
        yield ComparedPair(P95, base, of_base, of_new, repeats, tenant=str(tenant), why_not=why_not)


def _p95(of: Group, deviations: Floats, rng: np.random.Generator) -> Quantity:
    logs, variances = of
    repeats, draws = len(logs), len(deviations)
    if not repeats:
        return NOTHING
    within = np.sqrt(variances.mean() / repeats) * rng.standard_normal(draws)
    between = deviations * rng.standard_normal(draws) / np.sqrt(repeats)
    value = float(np.exp(logs.mean()))
    return Quantity(value, value * np.exp(within + between))


def _costs(made: ComparedPair, base: ComparedLine, new: ComparedLine) -> Iterator[ComparedPair]:
    """For each kind of price, yield the costs in both studies, in USD per million inferences.

    Both costs are for the same mix of requests: the mix with the proportions that the tenants'
    rates have in the base study.
    """
    others = {row["pricing"]: row for row in _priced(new)}
    for row in _priced(base):
        if row["pricing"] not in others:
            continue
        usd = float(row["usd_per_million_inferences"]) * made.base.value
        prices = others[row["pricing"]]["usd_per_hour"] / row["usd_per_hour"]
        before, after = made.base.dividing(usd), made.new.dividing(usd * prices)
        pricing = str(row["pricing"])
        yield ComparedPair(COST, base, before, after, made.repeats, made.floor, pricing=pricing)


def _priced(line: ComparedLine) -> list[dict[Any, Any]]:
    known = line.costs.dropna(subset=["usd_per_million_inferences"])
    known = known[np.isfinite(known["usd_per_million_inferences"]) & (known["usd_per_hour"] > 0)]
    rows: list[dict[Any, Any]] = known.drop_duplicates("pricing").to_dict("records")
    return rows


def _overall(peaks: list[ComparedPair]) -> Iterator[ComparedPair]:
    """For each server with at least two pairs of peaks, yield a pair for the whole server. The
    value of the base study is 1. The value of the new study is the geometric mean of (new peak /
    base peak) over the load lines of the server."""
    for server in dict.fromkeys(pair.line.row["server"] for pair in peaks):
        mine = [pair for pair in peaks if pair.line.row["server"] == server]
        if len(mine) < 2:
            continue
        value = float(np.exp(np.mean([np.log(pair.ratio.value) for pair in mine])))
        draws = np.exp(np.mean([np.log(pair.ratio.draws) for pair in mine], axis=0))
        ratio = Quantity(
            value,
            draws,
            open_below=any(pair.ratio.open_below for pair in mine),
            open_above=any(pair.ratio.open_above for pair in mine),
        )
        one = Quantity(1.0, np.ones(len(draws)))
        floor = float(np.sqrt(np.sum([pair.floor**2 for pair in mine]))) / len(mine)
        lowest = [min(pair.repeats[i] for pair in mine) for i in (0, 1)]
        yield ComparedPair(OVERALL, mine[0].line, one, ratio, (lowest[0], lowest[1]), floor)
