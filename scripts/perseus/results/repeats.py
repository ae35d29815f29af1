"""The repeats of a load line combined, with their uncertainty (docs/method.md, M9).

A load line is measured by one cell per repeat. Its uncertainty is a hierarchical bootstrap: repeats
are resampled, and of each the limit from the parametric bootstrap of its fit. Draw d of one line
goes with draw d of every other, so that ratios of lines are resampled jointly.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perseus.peak.stats import Floats, Interval

DRAWS = 2000
CONFIDENCE = 0.95
TAIL = (1 - CONFIDENCE) / 2
WORST_FIRST = ("failed", "unsteady", "client_limited", "infeasible", "uncertified", "ok")

Record = Mapping[str, Any]
"""The content of a cell's record.json."""


@dataclass(frozen=True)
class Line:
    """A load line with T tenants.

    `scale` and `rates_rps` (T,) are the means of the repeats that found a limit of the server, NaN
    if none did; `scale_draws` (draws,) and `rates_draws_rps` (draws, T) are then empty.
    """

    records: tuple[Record, ...]
    scale: float
    scale_draws: Floats
    rates_rps: Floats
    rates_draws_rps: Floats

    @property
    def cell(self) -> Mapping[str, Any]:
        """The slice of the configuration of its first repeat."""
        return self.records[0]["cell"]

    @property
    def tenants(self) -> list[str]:
        return [tenant["name"] for tenant in self.cell["tenants"]]

    @property
    def images_per_request(self) -> Floats:
        """Of each tenant, shape (T,)."""
        return np.array([float(each["request_batch_size"]) for each in self.cell["tenants"]])

    @property
    def is_dedicated(self) -> bool:
        return self.cell["line"]["kind"] == "dedicated"

    @property
    def verdict(self) -> str:
        """The worst outcome of its repeats."""
        return min((record["outcome"] for record in self.records), key=WORST_FIRST.index)

    @property
    def reason(self) -> str:
        """Why, if its verdict is not "ok"."""
        worst = next(record for record in self.records if record["outcome"] == self.verdict)
        which = f"repeat {worst['cell']['repeat']}: " if len(self.records) > 1 else ""
        return which + worst["reason"] if worst["reason"] else ""

    @property
    def certified(self) -> tuple[float, Floats]:
        """The smallest certified scale of its repeats and the rates there; NaN if one has none."""
        scales = [number(record["certified_scale"]) for record in self.records]
        lowest = int(np.argmin(scales))  # NaN counts as lowest
        return scales[lowest], rates_rps(self.records[lowest], scales[lowest])

    @property
    def first_failing(self) -> tuple[float, float]:
        """The smallest scale that failed above the certified one of its repeat; its total rate."""
        failing = [(number(r["first_failing_scale"]), r) for r in self.records]
        found = [(s, float(rates_rps(r, s).sum())) for s, r in failing if not np.isnan(s)]
        return min(found, default=(np.nan, np.nan))


def number(value: float | None) -> float:
    """A number of a record, where null stands for NaN."""
    return float("nan") if value is None else float(value)


def rates_rps(record: Record, scale: float) -> Floats:
    """Requests/s of each tenant at a point of the load line."""
    base, direction = (record["line"][part] for part in ("base_rps", "direction_rps"))
    pairs = zip(base, direction, strict=True)
    return np.array([number(start) + scale * number(step) for start, step in pairs])


def has_limit(record: Record) -> bool:
    """Whether a cell found the limit of the server, rather than of the client, or nothing."""
    return record["outcome"] in ("ok", "uncertified") and len(record["bootstrap_scales"]) > 0


def combine(records: Sequence[Record], seed: int, draws: int = DRAWS) -> Line:
    """The repeats of one load line, resampled with a stream of its own."""
    cell = records[0]["cell"]
    used = [record for record in records if has_limit(record)]
    if not used:
        nothing = np.full(len(cell["tenants"]), np.nan)
        return Line(tuple(records), np.nan, np.empty(0), nothing, np.empty((0, len(nothing))))
    scales = np.array([record["estimate_scale"] for record in used])
    base = np.array([record["line"]["base_rps"] for record in used])
    direction = np.array([record["line"]["direction_rps"] for record in used])
    rng = np.random.default_rng([seed, zlib.crc32(f"{key(records[0])}".encode())])
    repeats = rng.integers(0, len(used), (draws, len(used)))
    picked = np.empty(repeats.shape)
    for i, record in enumerate(used):
        chosen = repeats == i
        picked[chosen] = rng.choice(record["bootstrap_scales"], int(chosen.sum()))
    return Line(
        records=tuple(records),
        scale=float(scales.mean()),
        scale_draws=picked.mean(axis=1),
        rates_rps=(base + scales[:, None] * direction).mean(axis=0),
        rates_draws_rps=(base[repeats] + picked[:, :, None] * direction[repeats]).mean(axis=1),
    )


def key(record: Record) -> tuple[str, str]:
    """What repeats of one load line have in common."""
    return record["cell"]["scenario"], record["cell"]["line"]["name"]


def group(records: Sequence[Record], seed: int, draws: int = DRAWS) -> list[Line]:
    """All load lines, in the order in which they first appear."""
    found: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        found.setdefault(key(record), []).append(record)
    return [combine(repeats, seed, draws) for repeats in found.values()]


def dedicated(lines: Sequence[Line], of: Line) -> list[Line | None]:
    """The dedicated lines of the tenants of a line on the same server, where measured."""
    alone = {
        line.tenants[0]: line
        for line in lines
        if line.is_dedicated and line.cell["server"]["name"] == of.cell["server"]["name"]
    }
    return [alone.get(tenant) for tenant in of.tenants]


def sharing_ratio(line: Line, alone: Sequence[Line | None]) -> tuple[float, Floats]:
    """sum(r_i / C_i) at the limit and its draws; NaN and none when a peak is missing."""
    peaks = [peak for peak in alone if peak is not None and len(peak.scale_draws)]
    if len(peaks) < len(alone) or not len(line.scale_draws):
        return np.nan, np.empty(0)
    capacity = np.array([peak.rates_rps[0] for peak in peaks])
    capacity_draws = np.column_stack([peak.rates_draws_rps[:, 0] for peak in peaks])
    ratio = float((line.rates_rps / capacity).sum())
    return ratio, (line.rates_draws_rps / capacity_draws).sum(axis=1)


def interval(value: float, draws: Floats, tail: float = TAIL) -> Interval:
    """The percentile interval of the draws, `tail` on each side; NaN bounds without draws."""
    if not len(draws):
        return Interval(value, np.nan, np.nan)
    low, high = np.quantile(draws, [tail, 1 - tail])
    return Interval(value, float(low), float(high))


def mix_text(cell: Mapping[str, Any]) -> str:
    """A load line in words; weights and percentages are of dedicated peaks."""
    line, names = cell["line"], [tenant["name"] for tenant in cell["tenants"]]
    if line["kind"] == "dedicated":
        return names[0]
    if line["kind"] == "mix" and len(names) == 2:
        return "{} {} : {} {}".format(names[0], *line["weights"], names[1])
    if line["kind"] == "mix":
        pairs = zip(names, line["weights"], strict=True)
        return " : ".join(f"{name} {weight}" for name, weight in pairs)
    others = " + ".join(name for name in names if name != line["held"])
    return f"{others} beside {line['held']} held at {line['held_percent']} %"
