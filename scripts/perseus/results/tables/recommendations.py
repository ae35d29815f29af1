"""Make the table `recommendations`: for each model and mix of a grid, the recommended setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf

import numpy as np

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.peak.stats import Interval
from perseus.results.columns import CI, with_ends
from perseus.results.grids import GridComparison, comparisons
from perseus.results.records import Row
from perseus.results.schema import Schema, ascending, column
from perseus.results.study_results import StudyResults
from perseus.results.tables.aa import noise_floors
from perseus.results.tables.grid import GRID, grid

SURE = 0.95
"""A recommendation is clear only if the probability that its setting is the cheapest is at least
SURE."""

DESCRIPTION = (
    "The table states the recommended setting of each grid (a scenario that varies settings of its"
    " servers and tenants). One row per grid and load line (dedicated or shared). The table is"
    " empty without a grid."
)
TITLE = "Recommended settings"
NOTE = (
    "The table shows the cheapest setting that has a certified rate and exceeds no limit in the key"
    " `at_most` of the grid. The runner-up is the second cheapest setting. The choice is clear"
    " under two conditions: (1) the setting is the cheapest with a probability of at least"
    f" {SURE:g}; (2) (cost of the runner-up / cost of the setting - 1) exceeds the noise floor of"
    " the host (from an experiment `aa`). If each setting has only one repeat, the intervals do not"
    " include the variation between server starts."
)
SHOWN = {
    "model or mix": "mix",
    "setting": "setting",
    "USD per million": ("usd_per_million_inferences", "ci_low_usd", "ci_high_usd"),
    "runner-up": "runner_up",
    "cost / cost of the recommended setting": ("cost_ratio", "ratio_low", "ratio_high"),
    "P(cheapest)": "probability_cheapest",
    "noise of the host": "noise_floor",
    "verdict": "verdict",
}
VERDICTS = ("clear", "too close to tell", "only one", "none")
SCHEMA = Schema(
    [
        *GRID,
        column("setting", TEXT, "",
            "recommended setting in words. Null without a recommendation.", null=True),
        column("server", TEXT, "",
            "name of the server with the recommended setting, such as cpu1~runtime-openvino for the"
            " server cpu1 with the runtime openvino", null=True),
        column("scenario", TEXT, "",
            "name of the scenario with the recommended setting",
               null=True),
        column("certified_rps", REAL, "requests/s",
            "certified rate with the recommended setting, summed over all tenants: the lowest value"
            " of all repeats"),
        column("p95_ms", REAL, "ms",
            "95th percentile of the latency at the certified rate: the highest value of all tenants"
            " and repeats"),
        column("usd_per_million_inferences", REAL, "USD",
            "cost of a million inferences with the recommended setting, as in the table grid"),
        column("ci_low_usd", REAL, "USD",
            f"lower end of the 95 % interval of `usd_per_million_inferences` {CI}"),
        column("ci_high_usd", REAL, "USD",
            f"upper end of the 95 % interval of `usd_per_million_inferences` {CI}"),
        column("runner_up", TEXT, "",
            "runner-up: the second cheapest setting that can be recommended. Null if there is no"
            " such setting.", null=True),
        column("cost_ratio", REAL, "", "cost of the runner-up / cost of the recommended setting",
               least=0),
        column("ratio_low", REAL, "",
            "lower end of the 95 % interval of `cost_ratio`",
               least=0),
        column("ratio_high", REAL, "",
            "upper end of the 95 % interval of `cost_ratio`", least=0),
        column("probability_cheapest", REAL, "",
            "probability that the recommended setting is the cheapest. Null if the cost of a"
            " setting that can be recommended has a 95 % interval that begins at 0 or ends at"
            " infinity.", least=0, most=1),
        column("noise_floor", REAL, "share",
            "highest noise floor of the servers of all settings. In only 5 % of cases, two"
            " measurements with the same configuration differ by more than this share. Null without"
            " an experiment `aa`.", most=inf),
        column("settings", WHOLE, "", "number of measured settings"),
        column("excluded", WHOLE, "",
            "number of measured settings that cannot be recommended"),
        column("verdict", TEXT, "",
            "certainty of the recommendation: clear, too close to tell (another setting may be"
            " cheaper), only one (only one setting can be recommended) or none (no setting can be"
            " recommended)",
               choices=VERDICTS),
        column("recommendation", TEXT, "", "the recommendation in one or two sentences"),
    ],
    key=("grid", "mix", "load_line"),
    holds=[
        ascending("ci_low_usd", "usd_per_million_inferences", "ci_high_usd"),
        ascending("ratio_low", "cost_ratio", "ratio_high"),
        ascending("excluded", "settings"),
    ],
)  # fmt: skip


def rows(results: StudyResults) -> Iterator[Row]:
    floors = noise_floors(results)
    for comparison in comparisons(results):
        yield _row(comparison, _floor(comparison, floors), results.task.study)


def _row(comparison: GridComparison, floor: float | None, study: str) -> Row:
    excluded = [each for each in comparison.unranked if each.peak is not None]
    row = {
        **dict.fromkeys(SCHEMA.names),
        **grid(study, comparison),
        "noise_floor": floor,
        "settings": len(comparison.ranked) + len(excluded),
        "excluded": len(excluded),
        "verdict": "none",
    }
    if not comparison.ranked:
        reasons = dict.fromkeys(f"{each.of.description}: {each.excluded}" for each in excluded)
        return row | {"recommendation": f"No setting can be recommended ({'; '.join(reasons)})."}
    best = comparison.ranked[0]
    assert best.peak is not None
    usd = best.usd.interval()
    row |= {
        "setting": best.of.description,
        "server": best.of.server,
        "scenario": best.of.scenario,
        "certified_rps": float(best.peak.certified[1].sum()),
        "p95_ms": best.measured["p95_ms"],
        **with_ends("usd_per_million_inferences", usd, ("ci_low_usd", "ci_high_usd")),
        "probability_cheapest": comparison.probabilities[0],
    }
    cost = f"{best.of.description}: {_with_ends(usd)} USD per million inferences"
    if len(comparison.ranked) == 1:
        only = f"{cost}. Of {row['settings']} settings, only this setting can be recommended."
        return row | {"verdict": "only one", "recommendation": only}
    runner_up = comparison.ranked[1]
    ratio = runner_up.usd.over(best.usd).interval()
    clear = comparison.probabilities[0] >= SURE and ratio.value - 1 > (floor or 0)
    what = f"{runner_up.of.description} costs {_with_ends(ratio)} times as much"
    return row | {
        "runner_up": runner_up.of.description,
        **with_ends("cost_ratio", ratio, ("ratio_low", "ratio_high")),
        "verdict": "clear" if clear else "too close to tell",
        "recommendation": f"{cost}. {'' if clear else 'Too close to tell: '}{what}"
        f"{_sure(comparison.probabilities[0])}{_noise(floor)}.",
    }


def _floor(comparison: GridComparison, floors: Mapping[str, float]) -> float | None:
    servers = {each.of.server for each in (*comparison.ranked, *comparison.unranked)}
    return max((floors[name] for name in servers & floors.keys()), default=None)


def _with_ends(of: Interval) -> str:
    return f"{of.value:.3g} ({of.low:.3g} to {of.high:.3g})"


def _sure(probability: float) -> str:
    if np.isnan(probability):
        return ""
    how = f"of {probability:.3f}" if probability <= 0.999 else "above 0.999"
    return f"; the recommended setting is the cheapest with a probability {how}"


def _noise(floor: float | None) -> str:
    if floor is None:
        return "; the noise floor of this host was not measured (experiment `aa`)"
    return f"; cost ratios up to {1 + floor:.3g} may be noise of this host"
