"""Make the table `slowdown`: for each pair of tenants, the latency of one tenant beside the other,
divided by its latency alone."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import ClassVar

import numpy as np
from pydantic import Field

from perseus.host.parquet import FLAG, REAL, TEXT, WHOLE
from perseus.peak.outcome import Outcome
from perseus.peak.verdict import Verdict
from perseus.results.columns import CELL, cell, with_ends
from perseus.results.records import Number, Record, Row
from perseus.results.repeats import Quantity
from perseus.results.schema import Schema, ascending, column
from perseus.results.slowdowns import Pair, SlowdownComparison, Step, comparisons, of_rounds
from perseus.results.study_results import StudyResults


class SlowdownRecord(Record):
    """Record of an experiment `slowdown`, in which either one tenant or a pair of tenants has load
    in each window."""

    kind: ClassVar[str] = "slowdown"

    rates_rps: dict[str, Number] = Field(
        description=(
            "per tenant, the offered rate in requests/s. Null if the rate is configured as a share"
            " of a dedicated peak that the search did not find."
        )
    )
    dedicated_rps: dict[str, Number] = Field(
        description=(
            "per tenant, the dedicated peak in requests/s, if the rates are configured as shares of"
            " dedicated peaks. Empty if the rates are configured in requests/s."
        )
    )
    steps: tuple[Step, ...] = Field(
        description=(
            "one entry per window, in the order of the windows. A round measures all pairs of"
            " tenants once (docs/explanation/slowdown.md). An entry has the index of its round, the"
            " tenants with load, and `outcome` (ok, client_limited or disturbed) with its `reason`."
            " If the outcome is ok, `seen` has the results of each tenant: number of requests,"
            " share of requests with a response, verdict on the SLA, and the mean (by batch means)"
            " and the p95 of the latency in ms, each with its 95 % interval. An infinite end of an"
            " interval is null."
        )
    )


RECORD = SlowdownRecord
DESCRIPTION = (
    "The table states how much one tenant slows another tenant down. One row per cell and ordered"
    " pair of tenants: the tenant whose slowdown the row states (column `tenant`), and the other"
    " tenant with load (column `beside`). If both names are equal, the row compares two windows in"
    " which only this tenant has load (A/A). The table is empty without an experiment `slowdown`."
)
TITLE = "Slowdown of each pair"
NOTE = (
    "The slowdown is the latency of a tenant while another tenant has load, divided by its latency"
    " alone at the same rate. The table shows the slowdowns of the mean and of the p95 of the"
    " latency, with 95 % intervals in brackets. A row of a tenant beside itself compares two"
    " windows in which only this tenant has load (A/A), and so shows the noise. A slowdown is"
    " beyond the noise if the 95 % interval of (slowdown / slowdown in the A/A row) excludes 1."
)
SHOWN = {
    "cell": "cell",
    "tenant": "tenant",
    "beside": "beside",
    "requests/s": "rate_rps",
    "mean alone (ms)": "alone_mean_ms",
    "slowdown of the mean": ("slowdown", "slowdown_low", "slowdown_high"),
    "slowdown of p95": ("p95_slowdown", "p95_slowdown_low", "p95_slowdown_high"),
    "beyond noise": "beyond_noise",
    "windows over the SLA": "over_sla",
    "of windows": "comparisons",
    "verdict": "verdict",
    "why not": "reason",
}
MEAN, P95 = ("slowdown_low", "slowdown_high"), ("p95_slowdown_low", "p95_slowdown_high")
VERDICTS = [each for each in Outcome if each not in (Outcome.UNSTEADY, Outcome.PREDICTED)]
SCHEMA = Schema(
    [
        *CELL,
        column("tenant", TEXT, "", "name of the tenant"),
        column("model", TEXT, "", "name of the tenant's model"),
        column("beside", TEXT, "",
            "name of the other tenant that has load at the same time. If the row compares two"
            " windows of the tenant alone (A/A), this is the tenant's own name."),
        column("rate_rps", REAL, "requests/s", "offered rate of the tenant"),
        column("beside_rps", REAL, "requests/s",
            "offered rate of the tenant in the column `beside`"),
        column("comparisons", WHOLE, "",
            "number of valid comparisons. A comparison consists of two consecutive windows: in one"
            " window, both tenants have load, and in the other, only the tenant in the column"
            " `tenant` has load."),
        column("over_sla", WHOLE, "",
            "number of comparisons in which the tenant violated its SLA while the other tenant had"
            " load"),
        column("alone_mean_ms", REAL, "ms",
            "mean latency of the tenant alone: the geometric mean of the windows' mean latencies"),
        column("mean_ms", REAL, "ms",
            "mean latency of the tenant beside the other tenant: the geometric mean of the windows'"
            " mean latencies"),
        column("slowdown", REAL, "",
            "slowdown of the mean latency: mean latency beside the other tenant / mean latency"
            " alone (geometric mean over the comparisons)", least=0),
        column("slowdown_low", REAL, "", "lower end of the 95 % interval of `slowdown`",
               least=0),
        column("slowdown_high", REAL, "",
            "upper end of the 95 % interval of `slowdown`", least=0),
        column("alone_p95_ms", REAL, "ms",
            "95th percentile of the latency of the tenant alone: the geometric mean of the windows'"
            " percentiles"),
        column("p95_ms", REAL, "ms",
            "95th percentile of the latency of the tenant beside the other tenant: the geometric"
            " mean of the windows' percentiles"),
        column("p95_slowdown", REAL, "",
            "slowdown of the 95th percentile of the latency: value beside the other tenant / value"
            " alone (geometric mean over the comparisons)", least=0),
        column("p95_slowdown_low", REAL, "",
            "lower end of the 95 % interval of `p95_slowdown`",
               least=0),
        column("p95_slowdown_high", REAL, "",
            "upper end of the 95 % interval of `p95_slowdown`", least=0),
        column("beyond_noise", FLAG, "",
            "true if the slowdown differs significantly from the slowdown in the tenant's A/A row:"
            " the 95 % interval of the ratio of the two slowdowns excludes 1. Null in the A/A row.",
               null=True),
        column("verdict", TEXT, "",
            "verdict on the pair of tenants: ok, blocked, client_limited, disturbed, throttled,"
            " failed, infeasible (the server does not keep up with the load of the pair, or of the"
            " tenant alone) or uncertified (the tenant had no requests, or the server answered too"
            " few requests of the tenant alone)",
               choices=VERDICTS),
        column("reason", TEXT, "", "reason for a verdict other than ok"),
    ],
    key=("cell", "tenant", "beside"),
    holds=[
        ascending("over_sla", "comparisons"),
        ascending("slowdown_low", "slowdown", "slowdown_high"),
        ascending("p95_slowdown_low", "p95_slowdown", "p95_slowdown_high"),
    ],
)  # fmt: skip
"""Schema of the table. Latencies and slowdowns are null unless the verdict is ok."""


def rows(results: StudyResults) -> Iterator[Row]:
    for record in results.of_kind(SlowdownRecord):
        stream = [results.task.seed, zlib.crc32(record.task.cell.encode())]
        told = of_pairs(record.steps, np.random.default_rng(stream))
        models = {tenant.name: tenant.model for tenant in record.task.tenants}
        for tenant, beside in product(record.task.tenant_names, repeat=2):
            yield {
                **dict.fromkeys(SCHEMA.names),
                **cell(record.task),
                "tenant": tenant,
                "model": models[tenant],
                "beside": beside,
                "rate_rps": record.rates_rps[tenant],
                "beside_rps": record.rates_rps[beside],
                "comparisons": 0,
                "over_sla": 0,
                "verdict": record.outcome,
                "reason": record.reason,
                **told.get((tenant, beside), {}),
            }


def of_pairs(steps: Sequence[Step], rng: np.random.Generator) -> dict[Pair, Row]:
    """Return the measured columns of each row of the table, by pair of tenants. `steps` has the
    windows of the experiment."""
    compared: dict[Pair, list[SlowdownComparison]] = {}
    for each in comparisons(steps):
        compared.setdefault(each.pair, []).append(each)
    endings = {pair: _ending(each) for pair, each in compared.items()}
    good = {
        pair: [one for one in each if one.ending[0] is Outcome.OK]
        for pair, each in compared.items()
        if endings[pair][0] is Outcome.OK
    }
    means = of_rounds({pair: [one.of_means for one in each] for pair, each in good.items()}, rng)
    p95s = of_rounds({pair: [one.of_p95s for one in each] for pair, each in good.items()}, rng)
    told = {
        pair: {
            **_latencies(each),
            **with_ends("slowdown", means[pair].interval(), MEAN),
            **with_ends("p95_slowdown", p95s[pair].interval(), P95),
            "beyond_noise": _beyond(pair, means),
        }
        for pair, each in good.items()
    }
    return {
        pair: {"verdict": verdict, "reason": reason} | told.get(pair, {})
        for pair, (verdict, reason) in endings.items()
    }


def _ending(compared: Sequence[SlowdownComparison]) -> tuple[Outcome, str]:
    """Return the outcome of a pair of tenants, and the reason for this outcome.

    `compared` has the comparisons of the pair. If a comparison is infeasible (the server did not
    keep up with the load), the outcome of the pair is infeasible. Otherwise, the outcome is ok if
    at least one comparison is valid.
    """
    endings = [each.ending for each in compared]
    for decides in (Outcome.INFEASIBLE, Outcome.OK):
        for ending in endings:
            if ending[0] is decides:
                return ending
    return endings[-1]


def _latencies(compared: Sequence[SlowdownComparison]) -> Row:
    alone, shared = [each.alone for each in compared], [each.shared for each in compared]
    return {
        "comparisons": len(compared),
        "over_sla": sum(each.verdict is Verdict.FAIL for each in shared),
        "alone_mean_ms": _usual([each.mean_ms.value for each in alone]),
        "mean_ms": _usual([each.mean_ms.value for each in shared]),
        "alone_p95_ms": _usual([each.p95_ms.value for each in alone]),
        "p95_ms": _usual([each.p95_ms.value for each in shared]),
    }


def _usual(values_ms: Sequence[float]) -> float:
    return float(np.exp(np.log(values_ms).mean()))


def _beyond(pair: Pair, slowdowns: Mapping[Pair, Quantity]) -> bool | None:
    """Return whether the slowdown of a pair differs significantly from the noise.

    The noise is the slowdown in the A/A comparison of the first tenant. The result is None if the
    pair is itself an A/A comparison, or if its first tenant has no A/A comparison.
    """
    tenant, beside = pair
    if tenant == beside or (tenant, tenant) not in slowdowns:
        return None
    ends = slowdowns[pair].over(slowdowns[tenant, tenant]).interval()
    return ends.low > 1 or ends.high < 1
