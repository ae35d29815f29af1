"""Collect what a comparison needs of each load line of a study: its settings, and random draws of
its results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from perseus.host.printable import printable
from perseus.peak.outcome import Outcome
from perseus.peak.stats import NORMAL_ENDS, Floats, Interval
from perseus.results.compare.host_noise import HostNoise
from perseus.results.compare.source import Source
from perseus.results.paired import paired_peaks
from perseus.results.repeats import (
    NOTHING,
    SERVER_COULD_NOT,
    Alone,
    Dedicated,
    Quantity,
    RepeatedPeak,
    dedicated_peaks,
    each_alone,
    group,
    sharing_ratio,
)

LineKey = tuple[str, str, str]
"""Names of scenario (server and tenants), load line and preset. A comparison pairs the load lines
of two studies that have the same key."""


@dataclass(frozen=True)
class ComparedLine:
    """One load line of a study, with its rows of the tables `peaks`, `tenants` and `costs`.

    `peak` is the peak of the load line with its draws, or None if the study has no records. `alone`
    has the dedicated peaks of the tenants. `facts` has the settings that must be equal in both
    studies. Each key of `facts` names the difference in a message, such as "another SLA".
    """

    row: Mapping[Any, Any]
    tenants: pd.DataFrame
    costs: pd.DataFrame
    peak: RepeatedPeak | None
    alone: Alone
    facts: Mapping[str, str]

    @property
    def key(self) -> LineKey:
        return self.row["scenario"], self.row["load_line"], self.row["preset"]

    @property
    def repeats(self) -> int:
        """Number of repeats that found a limit of the server."""
        return int(self.row["repeats_used"])

    @property
    def why_unknown(self) -> str:
        """Reason why the peak has no estimate; empty if the peak has an estimate."""
        if self.row["estimate_rps"] is not None and np.isfinite(self.row["estimate_rps"]):
            return ""
        return f"{self.row['verdict']}: {self.row['reason']}".replace("_", " ").rstrip(": ")

    @property
    def why_lost(self) -> str:
        """Reason why the peak is unknown, if the server is the cause; otherwise empty.

        The client or other processes may also be the cause; the text is then empty. If no repeat
        found a limit and one repeat is infeasible, the server is the cause, even if other processes
        disturbed the other repeats.
        """
        if self.row["verdict"] in SERVER_COULD_NOT:
            return self.why_unknown
        if self.peak is None or not self.peak.is_infeasible:
            return ""
        record = next(each for each in self.peak.records if each.outcome == Outcome.INFEASIBLE)
        return printable(f"infeasible: repeat {record.task.repeat}: {record.reason}")

    def total_rps(
        self, weights: Floats | float, rng: np.random.Generator, noise: HostNoise
    ) -> Quantity:
        """Return the sum over the tenants of (weight x rate at the peak), with draws.

        If the study has no records, the draws follow from the interval in the table `peaks`.
        """
        if self.peak is not None:
            return self.peak.total(weights)
        return self._of_table(("estimate_rps", "ci_low_rps", "ci_high_rps"), rng, noise, cells=1)

    def sharing_ratio(self, rng: np.random.Generator, noise: HostNoise) -> Quantity:
        """Return the sharing ratio with draws.

        If the study has no records, the draws follow from the interval in the table `peaks`. To add
        the variation between repeats, the function then counts the mix as one cell, and all
        dedicated peaks together as one cell, because their errors may be correlated.
        """
        if self.peak is not None:
            return sharing_ratio(self.peak, self.alone)
        names = ("sharing_ratio", "sharing_ratio_low", "sharing_ratio_high")
        return self._of_table(names, rng, noise, cells=2)

    def _of_table(
        self, names: tuple[str, str, str], rng: np.random.Generator, noise: HostNoise, cells: int
    ) -> Quantity:
        """Return a quantity with draws. `names` are the columns of the table `peaks` with the value
        of the quantity and its interval.

        If the study has only one repeat, the interval in the table does not include the variation
        between repeats. The function then adds this variation to the draws, for a quantity that
        depends on `cells` independent cells.
        """
        found = Interval(*(self.row[name] for name in names))
        between: Floats | float = 0.0
        if self.repeats == 1:
            deviations = noise.deviations[self.row["server"]]
            between = np.sqrt(cells) * deviations * rng.standard_normal(noise.draws)
        return of_interval(found, rng, noise.draws, between)


def of_interval(
    found: Interval, rng: np.random.Generator, draws: int, more: Floats | float = 0.0
) -> Quantity:
    """Return a quantity with draws, given only its value and 95 % interval.

    On a logarithmic scale, the draws on each side of the value are half of a normal distribution.
    Its standard deviation fits the end of the interval on this side. If one end is open (0 or
    infinite), both sides have the standard deviation of the other end. If both ends are open, all
    draws equal the value. The function adds `more`, shape (draws,), to the logarithms of the draws.
    """
    ends = np.array([found.low, found.value, found.high], dtype=float)
    if not (np.isfinite(ends[1]) and ends[1] > 0):
        return NOTHING
    open_below, open_above = not ends[0] > 0, not np.isfinite(ends[2])
    with np.errstate(divide="ignore"):
        below, above = np.diff(np.log(ends)) / NORMAL_ENDS
    if open_below and open_above:
        return Quantity(found.value, np.full(draws, found.value), open_below, open_above)
    below, above = above if open_below else below, below if open_above else above
    normal = rng.standard_normal(draws)
    logs = np.log(found.value) + np.where(normal < 0, below, above) * normal + more
    return Quantity(found.value, np.exp(logs), open_below, open_above)


def lines(source: Source, seed: int, noise: HostNoise) -> dict[LineKey, ComparedLine]:
    """Return all load lines of a study, by scenario, load line and preset.

    Use another `seed` for each study. With the same seed, the random errors of the two studies
    would cancel out in the ratio of the results, and the interval of the ratio would be too narrow.
    """
    peaks: dict[tuple[str, str], RepeatedPeak] = {}
    for server, deviations in noise.deviations.items():
        of_server = [record for record in source.records if record.task.server.name == server]
        peaks |= paired_peaks(group(of_server, seed, noise.draws, deviations), seed)
    dedicated = dedicated_peaks(list(peaks.values()))
    found = (_line(row, source, peaks, dedicated) for _, row in source.tables["peaks"].iterrows())
    return {line.key: line for line in found}


def _line(
    row: pd.Series,
    source: Source,
    peaks: Mapping[tuple[str, str], RepeatedPeak],
    dedicated: Dedicated,
) -> ComparedLine:
    of = str(row["scenario"]), str(row["load_line"])
    peak = peaks.get(of)
    tenants, costs = (_of_line(source.tables[name], *of) for name in ("tenants", "costs"))
    return ComparedLine(
        row=row.to_dict(),
        tenants=tenants,
        costs=costs,
        peak=peak,
        alone=each_alone(peak, dedicated) if peak is not None else (),
        facts={fact: printable(value) for fact, value in _facts(row, tenants, peak, source)},
    )


def _of_line(frame: pd.DataFrame, scenario: str, load_line: str) -> pd.DataFrame:
    return frame[(frame["scenario"] == scenario) & (frame["load_line"] == load_line)]


def _facts(
    row: pd.Series, tenants: pd.DataFrame, peak: RepeatedPeak | None, source: Source
) -> Iterator[tuple[str, str]]:
    each = tenants.groupby("tenant", sort=False).first().reset_index().to_dict("records")
    yield "another mix", str(row["mix"])
    yield "other models", ", ".join(f"{t['tenant']}: {t['model']}" for t in each)
    yield (
        "another SLA",
        ", ".join(f"p{t['sla_percentile']:g} <= {t['sla_ms']:g} ms" for t in each),
    )
    # The sizes of the inputs are unknown if the server never started.
    if all(pd.notna(t["request_bytes"]) for t in each):
        yield "another input", ", ".join(_input(t) for t in each)
    preprocessed = (f"{t['tenant']}: {t['preprocessing'] or 'none'}" for t in each)
    yield "other preprocessing", ", ".join(preprocessed)
    checks = [source.checks[t["model"]] for t in each if t["model"] in source.checks]
    if len(checks) == len(each):
        inputs = [[*_sizes(check), check.get("images")] for check in checks]
        yield "other inputs of models", str(inputs)
    if peak is not None:
        task = peak.task
        sizes = ", ".join(str(tenant.request_batch_size) for tenant in task.tenants)
        yield "requests of another size", sizes
        arrivals = (
            task.arrivals.process,
            f"cv {task.arrivals.cv:g}",
            str(task.trace or ""),
        )
        yield "other arrivals", ", ".join(filter(None, arrivals))
        # A failed cell may have read no trace.
        if traces := peak.records[0].traces:
            yield "another trace", "; ".join(traces.values())


def _input(tenant: Mapping[Any, Any]) -> str:
    """Return the size of a tenant's inputs as text, with only two significant digits.

    The mean size of compressed images may differ slightly between two studies. With two digits,
    such studies still have the same text.
    """
    size = tenant["request_bytes"]
    return f"{size:.2g} bytes {tenant['preprocessing'] or ''}".strip()


def _sizes(check: Mapping[str, Any]) -> list[Any]:
    """Return the shapes of a model's inputs, given the content of check.json. A file from Perseus
    before version 1.1 contains the shape of only one input."""
    return [each["dims"] for each in check.get("inputs", [{"dims": check.get("input_shape")}])]
