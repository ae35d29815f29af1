"""Columns that several tables have, and how their rows are filled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.peak.outcome import Outcome
from perseus.peak.stats import Interval
from perseus.results.fleets.cheapest import GAP, STATUSES
from perseus.results.fleets.plans import Plan
from perseus.results.grids import GridComparison
from perseus.results.records import Row, number
from perseus.results.repeats import RepeatedPeak
from perseus.results.schema import ascending, column, holds
from perseus.study.tasks.measure import MeasureTask
from perseus.study.tasks.tables import Price

_SCENARIO = [
    column("study", TEXT, "", "name of the study"),
    column("server", TEXT, "", "name of the server in the configuration"),
    column("scenario", TEXT, "", "server and tenants: one Triton model repository"),
]

LOAD_LINE = [
    *_SCENARIO,
    column("load_line", TEXT, "", "name of the load line r(s) = base + s x direction"),
    column(
        "kind",
        TEXT,
        "",
        "dedicated, mix (all rise in proportion) or hold (some stay)",
        words=("dedicated", "mix", "hold"),
    ),
    column(
        "weights",
        TEXT,
        "",
        "of a mix, in the order of the tenants, such as 3 : 1; of the demand's in whole percent",
    ),
    column("preset", TEXT, "", "how much evidence was collected"),
    column("models", TEXT, "", "models of the tenants"),
    column(
        "mix",
        TEXT,
        "",
        "the load line in words; weights and percentages are of dedicated peaks, unless they are"
        " said to be of the requests",
    ),
    column(
        "verdict",
        TEXT,
        "",
        "the worst repeat's: ok, predicted, uncertified, infeasible, blocked, client_limited,"
        " disturbed, unsteady or failed",
        words=Outcome,
    ),
    column("reason", TEXT, "", "why not ok, in words"),
    column("repeats", WHOLE, "", "repeats measured", least=1),
    column(
        "repeats_used",
        WHOLE,
        "",
        "repeats that found a limit of the server: estimates are their mean, and where it is fewer"
        " than `repeats`, an end of the interval is open (docs/method.md, Repeats)",
    ),
]
"""The first columns of every table of peaks."""

REPEATS = [ascending("repeats_used", "repeats")]
"""What holds of LOAD_LINE."""

CELL = [
    *_SCENARIO,
    column("cell", TEXT, "", "folder of the raw results"),
    column("repeat", WHOLE, "", "repeat, counted from 1", least=1),
]
"""The first columns of every table of an experiment's own."""

CI = "of the 95 % interval (docs/method.md, Repeats)"


GRID = [
    column("study", TEXT, "", "name of the study"),
    column("grid", TEXT, "", "name of the scenario that has it in the configuration"),
    column("mix", TEXT, "", "the tenant alone, or the load line in words, as in the configuration"),
    column("load_line", TEXT, "", "name of the load line, as in the configuration"),
    column("preset", TEXT, "", "how much evidence was collected"),
]
"""The first columns of every table of grids."""


FLEET = [
    column("study", TEXT, "", "name of the study"),
    column("level", TEXT, "", "level of the demand: low, typical, peak, or demand if constant"),
    column(
        "strategy",
        TEXT,
        "",
        "what servers may be: dedicated, sharing allowed, or one type of server (shared or not)",
    ),
]
"""The first columns of every table of fleets."""

SOLVED = [
    column(
        "gap",
        REAL,
        "share",
        "of the price: by so much a cheaper fleet might be, for all that the solver knows",
    ),
    column(
        "status",
        TEXT,
        "",
        f"how the solver ended: optimal, to the gap that was asked for ({GAP:.2%}), or by the time"
        " limit; empty without a fleet",
        words=("", *STATUSES),
    ),
]
"""How sure it is that a fleet is the cheapest."""

FLEET_OR_REASON = holds(
    "there is a fleet, or a reason why not",
    lambda servers, reason: np.isnan(servers) == (reason != ""),
    null=True,
)


def _adds_up(proportion: pd.Series) -> pd.Series:
    """Each share is a whole number of percent, so that all together may be off."""
    shares = proportion.str.findall(r" (\d+)%(?:,|$)")
    return shares.map(lambda each: abs(sum(map(int, each)) - 100) <= len(each) / 2)


PROPORTION = holds("the shares of the proportion add up to 100 %", _adds_up)


PRICED = [
    column("currency", TEXT, "", "of the price list, converted into USD"),
    column(
        "price_date", TEXT, "", "day on which the price was valid; null where not known", null=True
    ),
    column("price_source", TEXT, "", "where the price was read"),
]
"""Of a price in a row."""


def of_price(price: Price) -> Row:
    """The columns PRICED."""
    return {
        "currency": price.currency,
        "price_date": price.date,
        "price_source": price.source,
    }


def fleet(study: str, plan: Plan) -> Row:
    """The columns FLEET."""
    return {"study": study, "level": plan.level.name, "strategy": plan.strategy}


def solved(plan: Plan) -> Row:
    """The columns SOLVED."""
    return {"gap": plan.gap, "status": plan.status}


def grid(study: str, of: GridComparison) -> Row:
    """The columns GRID."""
    return {
        "study": study,
        "grid": of.question.grid,
        "mix": of.mix,
        "load_line": of.question.load_line,
        "preset": of.preset,
    }


def load_line(peak: RepeatedPeak) -> Row:
    """The columns LOAD_LINE."""
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
    """The columns CELL."""
    return {**_scenario(task), "cell": task.cell, "repeat": task.repeat}


def _scenario(task: MeasureTask) -> Row:
    return {"study": task.study, "server": task.server.name, "scenario": task.scenario}


def with_ends(name: str, found: Interval, names: tuple[str, str]) -> Row:
    """A column of values and the two of its interval."""
    return {name: found.value, names[0]: found.low, names[1]: found.high}


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
"""Columns that tables of latencies have from windows.parquet."""


def compute_ms(window: Mapping[str, Any]) -> float:
    """The mean time of input, network and output in the server; NaN if a part is missing."""
    parts = ("compute_input_ms", "compute_ms", "compute_output_ms")
    return sum(number(window.get(name)) for name in parts)
