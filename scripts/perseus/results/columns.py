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

_SCENARIO = [
    column("study", TEXT, "", "name of the study"),
    column("server", TEXT, "", "name of the server in the configuration"),
    column(
        "scenario",
        TEXT,
        "",
        "name of the scenario, a server with its tenants (models)",
    ),
]

LOAD_LINE = [
    *_SCENARIO,
    column(
        "load_line",
        TEXT,
        "",
        "name of the load line. On a load line, the rate of each tenant is base + s x direction."
        " The load factor s is the same for all tenants.",
    ),
    column(
        "kind",
        TEXT,
        "",
        "kind of the load line: dedicated (one tenant alone), mix (all rates rise in a fixed"
        " ratio) or hold (some tenants keep constant rates)",
        choices=("dedicated", "mix", "hold"),
    ),
    column(
        "weights",
        TEXT,
        "",
        "weights of a mix, such as 3 : 1. Here, the first tenant's share of its dedicated peak is"
        " three times the second tenant's share. If the mix follows the demand, the weights are"
        " whole percentages.",
    ),
    column(
        "preset", TEXT, "", "name of the preset, which sets how much evidence the study collects"
    ),
    column("models", TEXT, "", "models of the tenants"),
    column(
        "mix",
        TEXT,
        "",
        "description of the load line, such as a 2 : 1 b. The numbers are in units of dedicated"
        " peaks, or of requests if the description says so.",
    ),
    column(
        "verdict",
        TEXT,
        "",
        "worst outcome of all repeats: ok, predicted, uncertified, infeasible, blocked,"
        " client_limited, disturbed, unsteady, throttled or failed. In the table tenants, this is"
        " the outcome of one repeat.",
        choices=Outcome,
    ),
    column("reason", TEXT, "", "reason for a verdict other than ok"),
    column("repeats", WHOLE, "", "number of measured repeats", least=1),
    column(
        "repeats_used",
        WHOLE,
        "",
        "number of repeats that found the limit of the server. Estimates are means over these"
        " repeats. If this number is less than `repeats`, the 95 % intervals have an open end"
        " (docs/explanation/repeats.md).",
    ),
]
"""The first columns of every table of peaks."""

REPEATS = [ascending("repeats_used", "repeats")]
"""Rules that hold for the columns LOAD_LINE."""

CELL = [
    *_SCENARIO,
    column("cell", TEXT, "", "folder of the raw results"),
    column("repeat", WHOLE, "", "number of the repeat, counted from 1", least=1),
]
"""The first columns of each table that contains a single kind of experiment, such as `replay`."""

CI = "(docs/explanation/repeats.md)"

PRECISION = column(
    "precision",
    TEXT,
    "",
    "numeric precision of the computation, such as fp32. If the runtime can choose the precision"
    " itself, this is the precision that the runtime reports; otherwise it is the configured"
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
    column("price_source", TEXT, "", "source of the price"),
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
    """Return a value and the two ends of its interval, as a dictionary with the names of their
    columns as keys."""
    return {name: found.value, names[0]: found.low, names[1]: found.high}


def written(rps: float) -> str:
    """Return a rate as text with four digits.

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
"""Columns that tables with latencies copy from windows.parquet."""


def compute_ms(window: Mapping[str, Any]) -> float:
    """Return the mean time in ms that the server takes to read the inputs of a request, run the
    model and write the outputs; NaN if one of these times is unknown."""
    parts = ("compute_input_ms", "compute_ms", "compute_output_ms")
    return sum(number(window.get(name)) for name in parts)
