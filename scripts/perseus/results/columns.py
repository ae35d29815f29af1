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
        "scenario: the server and the tenants that share one Triton model repository",
    ),
]

LOAD_LINE = [
    *_SCENARIO,
    column(
        "load_line",
        TEXT,
        "",
        "name of the load line: at load factor s, the tenants have the rates r(s) = base + s x"
        " direction",
    ),
    column(
        "kind",
        TEXT,
        "",
        "kind of the load line: dedicated (one tenant alone), mix (all rates rise in proportion)"
        " or hold (the rates of some tenants are constant)",
        choices=("dedicated", "mix", "hold"),
    ),
    column(
        "weights",
        TEXT,
        "",
        "weights of a mix in the order of the tenants, such as 3 : 1; whole percent if the mix is"
        " the mix of the demand",
    ),
    column("preset", TEXT, "", "preset: how much evidence the study collects"),
    column("models", TEXT, "", "models of the tenants"),
    column(
        "mix",
        TEXT,
        "",
        "load line in words; its weights and percentages refer to dedicated peaks, unless the"
        " words say that they refer to requests",
    ),
    column(
        "verdict",
        TEXT,
        "",
        "worst outcome of the repeats: ok, predicted, uncertified, infeasible, blocked,"
        " client_limited, disturbed, unsteady, throttled or failed",
        choices=Outcome,
    ),
    column("reason", TEXT, "", "reason for a verdict other than ok"),
    column("repeats", WHOLE, "", "number of measured repeats", least=1),
    column(
        "repeats_used",
        WHOLE,
        "",
        "number of repeats that found a limit of the server; an estimate is the mean over these"
        " repeats. If the number is less than `repeats`, the interval has an open end"
        " (docs/explanation/repeats.md)",
    ),
]
"""The first columns of every table of peaks."""

REPEATS = [ascending("repeats_used", "repeats")]
"""Rules that hold for the columns LOAD_LINE."""

CELL = [
    *_SCENARIO,
    column("cell", TEXT, "", "folder of the raw results"),
    column("repeat", WHOLE, "", "repeat, counted from 1", least=1),
]
"""The first columns of the tables that contain one kind of experiment only, such as `replay`."""

CI = "of the 95 % interval (docs/explanation/repeats.md)"

PRECISION = column(
    "precision",
    TEXT,
    "",
    "numeric precision of the computation: as the runtime reports it if the runtime may choose,"
    " else as configured; empty if only the server knows the precision",
)

PRICED = [
    column("currency", TEXT, "", "currency of the stated price; all prices are converted into USD"),
    column("price_date", TEXT, "", "day on which the price was valid; null if unknown", null=True),
    column("price_source", TEXT, "", "source of the price"),
]
"""Columns that describe the price of a server."""


def of_price(price: Price) -> Row:
    """Return the values of the columns PRICED for one price."""
    return {
        "currency": price.currency,
        "price_date": price.date,
        "price_source": price.source,
    }


def load_line(peak: RepeatedPeak) -> Row:
    """Return the values of the columns LOAD_LINE for one peak."""
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
    """Return the values of the columns CELL for one cell."""
    return {**_scenario(task), "cell": task.cell, "repeat": task.repeat}


def _scenario(task: MeasureTask) -> Row:
    return {"study": task.study, "server": task.server.name, "scenario": task.scenario}


def with_ends(name: str, found: Interval, names: tuple[str, str]) -> Row:
    """Return a value and the two ends of its interval, by the names of the three columns."""
    return {name: found.value, names[0]: found.low, names[1]: found.high}


def written(rps: float) -> str:
    """Return a rate as text with four digits.

    A number of 1000 or more keeps all digits before the decimal point. The text never has an
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
    """Return the mean time that the server takes to read the input, compute the model and write the
    output; NaN if a part is unknown."""
    parts = ("compute_input_ms", "compute_ms", "compute_output_ms")
    return sum(number(window.get(name)) for name in parts)
