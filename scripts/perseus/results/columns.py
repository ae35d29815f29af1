"""Columns that several tables share, and functions that fill them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from perseus.host.parquet import TEXT, WHOLE
from perseus.peak.outcome import Outcome
from perseus.peak.stats import Interval
from perseus.results.records import Row, number
from perseus.results.repeats import RepeatedPeak
from perseus.results.schema import ascending, column
from perseus.study.tasks.measure import MeasureTask
from perseus.study.tasks.tables import Price

PRESET = "name of the preset, such as quick. A preset sets confidence, window lengths and repeats."

MIX = (
    "description of the load line, such as a 2 : 1 b for a mix of tenants a and b with the weights"
    " 2 and 1"
)

EFFECTIVE_REQUESTS = (
    "effective sample size: the number of independent requests that would be as much evidence as"
    " `requests`. The number is smaller than `requests` if the latencies of successive requests are"
    " correlated (docs/explanation/verdict.md)."
)

CELL_NAME = "name of the cell, and of the folder with its raw results"

CLIENT_CPU_LOAD = (
    "CPU load of the client: the larger of (1) the CPU time per second of the tenant's busiest"
    " client process and (2) the quotient (CPU time per second of all client processes / number of"
    " client cores)"
)

_SCENARIO = [
    column("study", TEXT, "", "name of the study"),
    column("server", TEXT, "", "name of the server in the configuration"),
    column(
        "scenario",
        TEXT,
        "",
        "name of the scenario (a set of tenants on one server)",
    ),
]

LOAD_LINE = [
    *_SCENARIO,
    column(
        "load_line",
        TEXT,
        "",
        "name of the load line. A load line says how the rates of the tenants rise together: at"
        " load factor s, each tenant has the rate base + s x direction. The table tenants states"
        " base and direction of each tenant.",
    ),
    column(
        "kind",
        TEXT,
        "",
        "kind of the load line: dedicated (one tenant alone), mix (all rates rise in a fixed ratio)"
        " or hold (some tenants keep constant rates while the rates of the other tenants rise)",
        choices=("dedicated", "mix", "hold"),
    ),
    column(
        "weights",
        TEXT,
        "",
        "weights of a mix, one per tenant, such as 3 : 1. The rate of a tenant is proportional to"
        " its weight x its dedicated peak. If the mix has the proportions of the configured demand,"
        " the weights are whole percentages. Empty if the load line is not a mix.",
    ),
    column("preset", TEXT, "", PRESET),
    column("models", TEXT, "", "names of the tenants' models, such as a + b"),
    column("mix", TEXT, "", MIX),
    column(
        "verdict",
        TEXT,
        "",
        "worst outcome of all repeats (docs/reference/verdicts.md). From best to worst, the"
        " outcomes are ok, predicted, uncertified, infeasible, blocked, client_limited, disturbed,"
        " unsteady, throttled and failed. In the table tenants, each row belongs to one repeat, and"
        " this column has the outcome of this repeat.",
        choices=Outcome,
    ),
    column("reason", TEXT, "", "reason for a verdict other than ok"),
    column("repeats", WHOLE, "", "number of repeats, each on a restarted server", least=1),
    column(
        "repeats_used",
        WHOLE,
        "",
        "number of repeats that found a limit of the server. The estimates are means over these"
        " repeats. A repeat that found no limit makes the 95 % intervals of the peak unbounded"
        " (docs/explanation/repeats.md). After the outcome infeasible, failed, unsteady or"
        " throttled, the intervals begin at 0. After client_limited, the intervals end at infinity."
        " After any other outcome, the intervals begin at 0 and end at infinity.",
    ),
]
"""The first columns of each table whose rows are peaks."""

REPEATS = [ascending("repeats_used", "repeats")]
"""Rules that the columns LOAD_LINE must keep."""

CELL = [
    *_SCENARIO,
    column("cell", TEXT, "", CELL_NAME),
    column("repeat", WHOLE, "", "index of the repeat, starting at 1", least=1),
]
"""The first columns of each table that contains only results of one kind of experiment, such as
`replay`."""

CI = "(docs/explanation/repeats.md)"

PRECISION = column(
    "precision",
    TEXT,
    "",
    "numeric precision of the computation, such as fp32. If the runtime can choose the precision"
    " itself, this is the precision that the runtime reports; otherwise, this is the configured"
    " precision. Empty if only the server knows the precision.",
)

PRICED = [
    column(
        "currency",
        TEXT,
        "",
        "currency in which the source states the price. Perseus converts all prices into USD.",
    ),
    column(
        "price_date",
        TEXT,
        "",
        "day on which the price of the server was valid. Null if unknown.",
        null=True,
    ),
    column("price_source", TEXT, "", "origin of the price, such as the name of the price list"),
]
"""Columns that describe the price of a server."""


def of_price(price: Price) -> Row:
    return {
        "currency": price.currency,
        "price_date": price.date,
        "price_source": price.source,
    }


def load_line(peak: RepeatedPeak) -> Row:
    task = peak.task
    return {
        **_scenario(task),
        "load_line": task.run.name,
        "kind": peak.line,
        "weights": " : ".join(map(str, peak.weights)),
        "preset": task.preset,
        "models": " + ".join(tenant.model for tenant in task.tenants),
        "mix": peak.mix,
        "verdict": peak.verdict,
        "reason": peak.reason,
        "repeats": len(peak.records),
        "repeats_used": len(peak.records) - len(peak.lost),
    }


def cell(task: MeasureTask) -> Row:
    return {**_scenario(task), "cell": task.cell, "repeat": task.repeat}


def _scenario(task: MeasureTask) -> Row:
    return {"study": task.study, "server": task.server.name, "scenario": task.scenario}


def with_ends(name: str, found: Interval, names: tuple[str, str]) -> Row:
    """Return a value and the ends of its interval as three columns of a row: `name` for the value,
    and `names` for the lower and the upper end."""
    return {name: found.value, names[0]: found.low, names[1]: found.high}


def written(rps: float) -> str:
    """Return a rate as text with four significant digits.

    A rate of 1000 or more keeps all digits before the decimal point. The text never has an
    exponent.
    """
    decimals = max(3 - math.floor(math.log10(rps)), 0) if rps else 0
    return np.format_float_positional(round(rps, decimals), trim="-")


WINDOW = (
    "requests",
    "effective_requests",
    "batches",
    "errors",
    "p50_ms",
    "p95_ms",
    "p95_low_ms",
    "p95_high_ms",
    "p99_ms",
    "queue_ms",
    "client_ms",
)
"""Columns of windows.parquet that tables with latencies copy without a change."""


def compute_ms(window: Mapping[str, Any]) -> float:
    """Return the mean time in ms that the server takes to read the inputs of a request, run the
    model and write the outputs; NaN if one of these times is unknown."""
    parts = ("compute_input_ms", "compute_ms", "compute_output_ms")
    return sum(number(window.get(name)) for name in parts)
