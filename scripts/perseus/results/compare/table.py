"""Make the table of a comparison of two studies: for each compared quantity, both values, their
ratio and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np
import pyarrow as pa

from perseus.host import parquet
from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.results.columns import MIX, PRESET, with_ends
from perseus.results.compare.host_noise import HostNoise, host_noise
from perseus.results.compare.judge import (
    BETTER,
    NOT_COMPARABLE,
    VERDICTS,
    WORSE,
    Judged,
    judge,
)
from perseus.results.compare.lines import lines
from perseus.results.compare.pairs import HIGHER_IS_BETTER, OVERALL, UNITS, pairs
from perseus.results.compare.source import Source
from perseus.results.records import Row
from perseus.results.schema import Schema, ascending, close, column, holds

DRAWS: Final = 10_000
SEEDS: Final = (1, 2, 3)
"""Random seeds: the first for the draws of the base results, the second for the draws of the new
results, and the third for draws that both results share."""

DESCRIPTION = (
    "One row per quantity that Perseus compares, with its value in the base results and its value"
    " in the new results."
)
SCHEMA = Schema(
    [
        column("metric", TEXT, "",
            "compared quantity: overall (geometric mean of new peak / base peak over the load lines"
            " of a server), peak (estimated peak of a load line), sharing_ratio, p95 (95th"
            " percentile of a tenant's latency at its certified rate) or cost (per million"
            " inferences)", choices=UNITS),
        column("server", TEXT, "", "name of the server in both configurations"),
        column("scenario", TEXT, "",
            "name of the scenario (server and tenants). Empty if `metric` is overall."),
        column("load_line", TEXT, "",
            "name of the load line. Empty if `metric` is overall."),
        column("preset", TEXT, "",
            f"{PRESET} Empty if `metric` is overall."),
        column("mix", TEXT, "", MIX),
        column("tenant", TEXT, "",
            "name of the tenant whose latency the row compares. Empty unless `metric` is p95."),
        column("pricing", TEXT, "",
            "kind of price (on_demand, spot or committed) of the compared cost. Empty unless"
            " `metric` is cost."),
        column("unit", TEXT, "",
            "unit of the columns `base` and `new`", choices=dict.fromkeys(UNITS.values())),
        column("better_is", TEXT, "", "whether a higher or a lower value of the metric is better",
            choices=("higher", "lower")),
        column("base", REAL, "",
            "value of the metric in the base results. In rows of the metric overall, the value is"
            " 1.", least=0),
        column("base_low", REAL, "",
            "lower end of the 95 % interval of `base`. Perseus estimates the variation between"
            " repeats from both studies together, so the interval may differ from the interval in"
            " the tables of one study.",
               least=0),
        column("base_high", REAL, "",
            "upper end of the 95 % interval of `base`", least=0),
        column("new", REAL, "",
            "value of the metric in the new results. In rows of a peak or a cost, Perseus converts"
            " the value to the proportions that the tenants' rates have in the base"
            " results.", least=0),
        column("new_low", REAL, "", "lower end of the 95 % interval of `new`", least=0),
        column("new_high", REAL, "", "upper end of the 95 % interval of `new`", least=0),
        column("ratio", REAL, "", "new / base", least=0),
        column("ci_low", REAL, "",
            "lower end of the 95 % interval of `ratio`, valid for this row alone",
               least=0),
        column("ci_high", REAL, "",
            "upper end of the 95 % interval of `ratio`, valid for this row alone",
               least=0),
        column("simultaneous_low", REAL, "",
            "lower end of the simultaneous 95 % interval of `ratio`. With a probability of 95 %,"
            " the simultaneous intervals of all rows contain their true ratios"
            " (docs/explanation/comparison.md).", least=0),
        column("simultaneous_high", REAL, "",
            "upper end of the simultaneous 95 % interval of `ratio`", least=0),
        column("noise_floor", REAL, "share",
            "noise floor of the host for these numbers of repeats, from an experiment `aa`. If two"
            " studies measure the same configuration, their values differ by more than this share"
            " in only 5 % of cases. Null if neither study has an experiment `aa` on this server,"
            " and in the rows of p95.", most=inf),
        column("base_repeats", WHOLE, "",
            "number of repeats whose mean is `base`. In rows of the metric overall, this is the"
            " lowest number of repeats of a load line of the server."),
        column("new_repeats", WHOLE, "",
            "number of repeats whose mean is `new`. In rows of the metric overall, this is the"
            " lowest number of repeats of a load line of the server."),
        column("compared", WHOLE, "",
            "number of rows for which the simultaneous 95 % intervals are valid together"),
        column("verdict", TEXT, "",
            "verdict on the new value: `worse`, `better`, `no difference` (the results do not show"
            " that the values differ) or `not comparable`", choices=VERDICTS),
        column("reason", TEXT, "",
            "reason why the two values are not comparable. Empty for comparable values."),
        column("lost", TEXT, "",
            "reason why the new results have no peak for this row, although the base results have"
            " one: in the new study, the outcome is infeasible, failed, unsteady or throttled."
            " Empty in all other rows."),
    ],
    key=("metric", "server", "scenario", "load_line", "preset", "tenant", "pricing"),
    holds=[
        holds("ratio = new / base", lambda ratio, new, base: close(ratio, new / base)),
        ascending("ci_low", "ratio", "ci_high"),
        ascending("simultaneous_low", "ratio", "simultaneous_high"),
        holds(
            "if the verdict is `better` or `worse`, the simultaneous interval excludes 1",
            lambda verdict, simultaneous_low, simultaneous_high: (
                ~verdict.isin([BETTER, WORSE]) | (simultaneous_low > 1) | (simultaneous_high < 1)
            ),
        ),
        holds(
            "the verdict `better` has a ratio above 1 if a higher value is better, and below 1 if a"
            " lower value is better; the verdict `worse` has a ratio on the other side of 1",
            lambda verdict, better_is, ratio: (
                ~verdict.isin([BETTER, WORSE])
                | ((verdict == BETTER) == ((ratio > 1) == (better_is == "higher")))
            ),
        ),
        holds(
            "a row with the verdict `not comparable` has no ratio, and every other row has a ratio",
            lambda verdict, ratio: (verdict == NOT_COMPARABLE) == np.isnan(ratio),
            null=True,
        ),
    ],
)  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """Comparison of two studies: the noise of their hosts, and all pairs of values with their
    verdicts."""

    base: Source
    new: Source
    noise: HostNoise
    judged: tuple[Judged, ...]

    @property
    def table(self) -> pa.Table:
        return parquet.table(list(rows(self.judged)), SCHEMA.arrow)


def compare(base: Source, new: Source, draws: int = DRAWS) -> Comparison:
    """Compare the base results with the new results."""
    rng = np.random.default_rng(SEEDS[2])
    noise = host_noise((base, new), rng, draws)
    of_base, of_new = lines(base, SEEDS[0], noise), lines(new, SEEDS[1], noise)
    return Comparison(base, new, noise, tuple(judge(pairs(of_base, of_new, noise, rng))))


def rows(judged: Sequence[Judged]) -> Iterator[Row]:
    compared = sum(bool(np.isfinite(each.interval.value)) for each in judged)
    for each in judged:
        pair, line = each.pair, each.pair.line
        named = dict.fromkeys(("scenario", "load_line", "preset"), "")
        if pair.metric != OVERALL:
            named |= dict(zip(named, line.key, strict=True))
        yield {
            "metric": pair.metric,
            "server": line.row["server"],
            **named,
            "mix": "all compared peaks" if pair.metric == OVERALL else line.row["mix"],
            "tenant": pair.tenant,
            "pricing": pair.pricing,
            "unit": UNITS[pair.metric],
            "better_is": "higher" if HIGHER_IS_BETTER[pair.metric] else "lower",
            **with_ends("base", pair.base.interval(), ("base_low", "base_high")),
            **with_ends("new", pair.new.interval(), ("new_low", "new_high")),
            **with_ends("ratio", each.interval, ("ci_low", "ci_high")),
            "simultaneous_low": each.simultaneous.low,
            "simultaneous_high": each.simultaneous.high,
            "noise_floor": pair.floor,
            "base_repeats": pair.repeats[0],
            "new_repeats": pair.repeats[1],
            "compared": compared,
            "verdict": each.verdict,
            "reason": pair.why_not,
            "lost": pair.lost,
        }
