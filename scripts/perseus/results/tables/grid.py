"""Make the table `grid`: the results of all settings of each grid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from perseus.host.parquet import FLAG, REAL, TEXT, WHOLE
from perseus.peak.outcome import Outcome
from perseus.results.columns import CI, PRESET, with_ends
from perseus.results.grids import Contender, GridComparison, comparisons
from perseus.results.records import Row
from perseus.results.repeats import Quantity
from perseus.results.schema import Schema, ascending, close, column, holds
from perseus.results.study_results import StudyResults
from perseus.study.setting import Setting, text

if TYPE_CHECKING:  # needed only for type checks
    import pandas as pd

DESCRIPTION = (
    "The table compares the settings of each grid (a scenario that varies settings of its servers"
    " and tenants). One row per grid, load line (dedicated or shared) and setting. For each load"
    " line, the cheapest setting comes first. The table is empty without a grid."
)
TITLE = "Settings side by side"
NOTE = (
    "The table shows the settings of each grid, the cheapest first. 95 % intervals are in brackets."
    " The cost is in USD per million inferences at the estimated limit. P(cheapest) is the"
    " probability that the setting is the cheapest of all settings that can be recommended, from"
    " joint random draws of their costs. A setting is on the front if each other setting that can"
    " be recommended is worse in cost, latency or throughput, or is equal in all three. p95 is the"
    " 95th percentile of the latency of the slowest tenant, at the certified rate."
)
SHOWN = {
    "model or mix": "mix",
    "setting": "setting",
    "cost": ("usd_per_million_inferences", "ci_low_usd", "ci_high_usd"),
    "cost / cost of the cheapest": ("cost_ratio", "ratio_low", "ratio_high"),
    "P(cheapest)": "probability_cheapest",
    "limit (requests/s)": ("estimate_rps", "ci_low_rps", "ci_high_rps"),
    "certified (requests/s)": "certified_rps",
    "p95 (ms)": "p95_ms",
    "relative error": "relative_error",
    "J per inference": "joules_per_inference",
    "on the front": "on_front",
    "verdict": "verdict",
    "why not recommended": "excluded",
}


def _is_ranked_or_excluded(rank: pd.Series, excluded: pd.Series) -> pd.Series:
    return rank.isna() == (excluded != "")


def _add_up_to_1(
    grid: pd.Series, mix: pd.Series, load_line: pd.Series, probability_cheapest: pd.Series
) -> pd.Series:
    total = probability_cheapest.groupby([grid, mix, load_line]).transform("sum")
    return close(total, 1)


GRID = [
    column("study", TEXT, "", "name of the study"),
    column(
        "grid",
        TEXT,
        "",
        "name of the scenario in the configuration that defines the grid",
    ),
    column(
        "mix",
        TEXT,
        "",
        "description of the load line without the setting, such as a 2 : 1 b for a mix of tenants a"
        " and b with the weights 2 and 1, or the name of the tenant for a dedicated load line",
    ),
    column("load_line", TEXT, "", "name of the load line, as in the configuration"),
    column("preset", TEXT, "", PRESET),
]
"""The first columns of the tables `grid` and `recommendations`."""

SCHEMA = Schema(
    [
        *GRID,
        column("scenario", TEXT, "",
            "name of the scenario (a set of tenants on one server)"),
        column("server", TEXT, "",
            "name of the server with this setting, such as cpu1~runtime-openvino for the server"
            " cpu1 with the runtime openvino"),
        column("setting", TEXT, "", "setting in words, such as runtime openvino, instances 2"),
        column("runtime", TEXT, "",
            "runtime in this setting. Null if the grid does not vary the runtime.", null=True),
        column("cores", WHOLE, "cores",
            "number of cores of the server in this setting. Null if the grid does not vary this"
            " number.", null=True, least=1),
        column("precision", TEXT, "",
            "numeric precision in this setting. Null if the grid does not vary the"
            " precision.", null=True),
        column("instances", WHOLE, "",
            "number of instances of each model in this setting. Null if the grid does not vary this"
            " number.", null=True, least=1),
        column("max_batch_size", WHOLE, "images",
            "largest number of images in a batch (configured key max_batch_size) in this setting."
            " Null if the grid does not vary this number.", null=True, least=1),
        column("max_queue_delay_us", TEXT, "us",
            "longest time that a request waits for other requests to form a larger batch in this"
            " setting (configured key max_queue_delay_us). The word none means that the setting has"
            " no dynamic batching. Null if the grid does not vary this time.",
               null=True),
        column("preferred_batch_sizes", TEXT, "images",
            "preferred batch sizes of dynamic batching in this setting, such as 4-8 for the sizes 4"
            " and 8. The word none means that the setting has no preferred sizes. Null if the grid"
            " does not vary these sizes.",
               null=True),
        column("intra_op_threads", WHOLE, "",
            "number of threads that compute one inference in this setting. Null if the grid does"
            " not vary this number.",
               null=True, least=1),
        column("rank", WHOLE, "",
            "rank of the setting by cost, from 1 for the cheapest setting. Null for a setting that"
            " cannot be recommended.",
               null=True, least=1),
        column("excluded", TEXT, "",
            "reason why the setting cannot be recommended: it was not measured, has no certified"
            " rate or no known cost, or a quantity in the key `at_most` of the grid exceeds its"
            " limit or was not measured. Empty for a setting that can be recommended."),
        column("verdict", TEXT, "",
            "verdict on the setting, as in the table peaks, or left_out if the setting was not"
            " measured",
               choices=(*Outcome, "left_out")),
        column("repeats", WHOLE, "",
            "number of repeats. Null if the setting was not measured.", null=True, least=1),
        column("estimate_rps", REAL, "requests/s",
            "estimated peak of the server, summed over all tenants"),
        column("ci_low_rps", REAL, "requests/s",
            f"lower end of the 95 % interval of `estimate_rps` {CI}"),
        column("ci_high_rps", REAL, "requests/s",
            f"upper end of the 95 % interval of `estimate_rps` {CI}"),
        column("certified_rps", REAL, "requests/s",
            "lowest certified rate of all repeats, summed over all tenants"),
        column("p95_ms", REAL, "ms",
            "95th percentile of the latency at the certified rate: the highest value of all tenants"
            " and repeats"),
        column("usd_per_million_inferences", REAL, "USD",
            "cost of a million inferences at the estimated peak, with the first kind of price in"
            " costs.pricing. In a mix, a request of a tenant counts as the same number of"
            " inferences in all settings, so that the costs refer to the same work"
            " (docs/explanation/grids.md)."),
        column("ci_low_usd", REAL, "USD",
            f"lower end of the 95 % interval of `usd_per_million_inferences` {CI}"),
        column("ci_high_usd", REAL, "USD",
            f"upper end of the 95 % interval of `usd_per_million_inferences` {CI}"),
        column("cost_ratio", REAL, "",
            "cost of the setting / cost of the cheapest setting", least=0),
        column("ratio_low", REAL, "",
            "lower end of the 95 % interval of `cost_ratio`",
               least=0),
        column("ratio_high", REAL, "",
            "upper end of the 95 % interval of `cost_ratio`", least=0),
        column("probability_cheapest", REAL, "",
            "probability that the setting is the cheapest of all settings that can be recommended:"
            " the share of joint random draws in which its cost is the lowest. If the 95 % interval"
            " of one of these costs begins at 0 or ends at infinity, the probability is null for"
            " all settings of the load line.", least=0, most=1),
        column("on_front", FLAG, "",
            "true if the setting is on the Pareto front: each other setting that can be recommended"
            " is worse in cost, p95_ms or throughput, or is equal in all three. Null for a setting"
            " that cannot be recommended.", null=True),
        column("relative_error", REAL, "",
            "relative error of the server's responses, compared with the responses of the same"
            " network in fp32: the largest value of all tenants and repeats", least=0),
        column("joules_per_inference", REAL, "J",
            "energy of one inference, as in the table costs. Null without energy counters."),
    ],
    key=("grid", "mix", "load_line", "scenario"),
    holds=[
        ascending("ci_low_rps", "estimate_rps", "ci_high_rps"),
        ascending("ci_low_usd", "usd_per_million_inferences", "ci_high_usd"),
        ascending("ratio_low", "cost_ratio", "ratio_high"),
        holds(
            "a row has either a rank or a reason in the column"
            " `excluded`", _is_ranked_or_excluded, null=True),
        holds("the probabilities of all settings for one load line add up to 1", _add_up_to_1),
    ],
)  # fmt: skip
WHOLE_NUMBERS = ("cores", "instances", "max_batch_size", "intra_op_threads")
TEXTS = ("runtime", "precision", "max_queue_delay_us", "preferred_batch_sizes")


def grid(study: str, of: GridComparison) -> Row:
    return {
        "study": study,
        "grid": of.question.grid,
        "mix": of.mix,
        "load_line": of.question.load_line,
        "preset": of.preset,
    }


def rows(results: StudyResults) -> Iterator[Row]:
    for comparison in comparisons(results):
        yield from _of_question(comparison, results.task.study)


def _of_question(comparison: GridComparison, study: str) -> Iterator[Row]:
    first = grid(study, comparison)
    best = comparison.ranked[0].usd if comparison.ranked else None
    for i, each in enumerate((*comparison.ranked, *comparison.unranked)):
        ranked = i < len(comparison.ranked)
        yield {
            **dict.fromkeys(SCHEMA.names),
            **first,
            **_values(each.of.values),
            "setting": each.of.description,
            "scenario": each.of.scenario,
            "server": each.of.server,
            "excluded": each.excluded,
            "verdict": each.peak.verdict if each.peak is not None else "left_out",
            **_found(each),
            **(_ratio(each, best) if best is not None else {}),
            "rank": i + 1 if ranked else None,
            "probability_cheapest": comparison.probabilities[i] if ranked else None,
            "on_front": comparison.on_front[i] if ranked else None,
        }


def _values(of: Setting) -> Row:
    return {
        **{key: of[key] for key in WHOLE_NUMBERS if key in of},
        **{key: text(of[key]) for key in TEXTS if key in of},
    }


def _found(of: Contender) -> Row:
    if of.peak is None:
        return {}
    return {
        "repeats": len(of.peak.records),
        **with_ends("estimate_rps", of.peak.total().interval(), ("ci_low_rps", "ci_high_rps")),
        "certified_rps": float(of.peak.certified[1].sum()),
        **with_ends("usd_per_million_inferences", of.usd.interval(), ("ci_low_usd", "ci_high_usd")),
        **of.measured,
    }


def _ratio(of: Contender, best: Quantity) -> Row:
    if not of.usd.is_known:
        return {}
    return with_ends("cost_ratio", of.usd.over(best).interval(), ("ratio_low", "ratio_high"))
