"""Table `background`: the peak of one tenant beside tenants at fixed rates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, cast

import numpy as np

from perseus.host.parquet import REAL, TEXT
from perseus.peak.outcome import Outcome
from perseus.peak.stats import UNKNOWN, Floats, Interval
from perseus.results.columns import CELL, CI, cell, with_ends
from perseus.results.records import PeakRecord, Row
from perseus.results.repeats import (
    Alone,
    RepeatedPeak,
    key,
    known_peaks,
    limit_changes,
    sharing_ratio,
)
from perseus.results.schema import Schema, ascending, close, column, holds
from perseus.results.study_results import StudyResults
from perseus.study.experiments.background import Run


class BackgroundRecord(PeakRecord):
    """The record of a peak beside tenants at fixed rates."""

    kind: ClassVar[str] = "background"


DESCRIPTION = (
    "One row per cell; columns that describe all repeats of the load line have the same value in"
    " each row. The table of peaks also has these lines. Empty without such an experiment."
)
TITLE = "Peak beside tenants at fixed rates"
NOTE = (
    "The design of the 2020 study: the peak of one tenant beside other tenants at constant rates."
    " Shares are relative to dedicated peaks. If the two shares add up to more than 1, one shared"
    " server carries more than dedicated servers of the same cost. 95 % intervals in brackets."
)
SHOWN = {
    "cell": "cell",
    "searched": "searched",
    "beside": "background_tenants",
    "at": "background_at",
    "background load (requests/s)": "background_rps",
    "peak (requests/s)": ("peak_rps", "peak_low_rps", "peak_high_rps"),
    "background share": "background_share",
    "share of its dedicated peak": ("share", "share_low", "share_high"),
    "both": ("sharing_ratio", "sharing_ratio_low", "sharing_ratio_high"),
    "verdict": "verdict",
    "why not": "reason",
}
SCHEMA = Schema(
    [
        *CELL,
        column("load_line", TEXT, "", "name of the load line, as in the table of peaks"),
        column("searched", TEXT, "", "the tenant that was searched"),
        column("background_tenants", TEXT, "", "the tenants at a constant rate"),
        column("background_at", TEXT, "", "their constant rates, as text"),
        column("background_rps", REAL, "requests/s", "sum of their constant rates"),
        column("certified_rps", REAL, "requests/s", "rate of the searched tenant at the certified"
               " point of this repeat"),
        column("estimate_rps", REAL, "requests/s", "its rate at the estimated limit of this"
               " repeat"),
        column("peak_rps", REAL, "requests/s", "its rate at the estimated limit, mean of the"
               " repeats that found one"),
        column("peak_low_rps", REAL, "requests/s", f"lower end {CI}"),
        column("peak_high_rps", REAL, "requests/s", "upper end"),
        column("dedicated_rps", REAL, "requests/s", "its dedicated peak on the same server"),
        column("dedicated_low_rps", REAL, "requests/s", f"lower end {CI}"),
        column("dedicated_high_rps", REAL, "requests/s", "upper end"),
        column("background_share", REAL, "", "sum of the constant rates, each as a share of its"
               " tenant's dedicated peak at the host's speed in this cell"
               " (docs/explanation/sharing-ratio.md)", least=0),
        column("share", REAL, "", "peak_rps as a share of the dedicated peak, likewise", least=0),
        column("share_low", REAL, "", f"lower end {CI}", least=0),
        column("share_high", REAL, "", "upper end", least=0),
        column("sharing_ratio", REAL, "", "share + background_share: 1 where sharing neither gains"
               " nor loses", least=0),
        column("sharing_ratio_low", REAL, "", f"lower end {CI}", least=0),
        column("sharing_ratio_high", REAL, "", "upper end", least=0),
        column("verdict", TEXT, "", "of this repeat, as in the table of peaks", choices=Outcome),
        column("reason", TEXT, "", "why the verdict is not ok"),
    ],
    key=("cell",),
    holds=[
        ascending("peak_low_rps", "peak_rps", "peak_high_rps"),
        ascending("dedicated_low_rps", "dedicated_rps", "dedicated_high_rps"),
        ascending("share_low", "share", "share_high"),
        ascending("sharing_ratio_low", "sharing_ratio", "sharing_ratio_high"),
        holds(
            "sharing_ratio = share + background_share",
            lambda sharing_ratio, share, background_share: close(
                sharing_ratio, share + background_share
            ),
        ),
    ],
)  # fmt: skip
"""Columns that depend on a peak are null if the peak was not found."""


def rows(results: StudyResults) -> Iterator[Row]:
    for record in results.of_kind(BackgroundRecord):
        yield _row(record, results)


def _row(record: BackgroundRecord, results: StudyResults) -> Row:
    run, names = cast(Run, record.run), record.task.tenant_names
    peak = results.peaks[key(record.task)]
    alone, place = results.alone(peak), names.index(run.searched)
    searched = np.eye(len(names))[place]
    background_rps = np.array(record.line.base_rps) * (1 - searched)
    at_limit = peak.correction * record.estimate_scale if record.has_limit else np.nan
    ratio, share = results.sharing_ratio(peak), sharing_ratio(peak, alone, searched)
    return {
        **cell(record.task),
        "load_line": run.name,
        "searched": run.searched,
        "background_tenants": " + ".join(run.background_tenants(names)),
        "background_at": run.background_at,
        "background_rps": float(background_rps.sum()),
        "certified_rps": float(record.rates_rps(record.certified_scale)[place]),
        "estimate_rps": float(record.rates_rps(at_limit)[place]),
        **_with_ends("peak", "_rps", peak.total(searched).interval()),
        **_with_ends("dedicated", "_rps", _interval(alone[place])),
        "background_share": _share(background_rps, peak, alone),
        **_with_ends("share", "", share.interval()),
        **_with_ends("sharing_ratio", "", ratio.interval()),
        "verdict": record.outcome,
        "reason": record.reason,
    }


def _with_ends(name: str, unit: str, found: Interval) -> Row:
    return with_ends(f"{name}{unit}", found, (f"{name}_low{unit}", f"{name}_high{unit}"))


def _interval(dedicated: RepeatedPeak | None) -> Interval:
    return dedicated.total().interval() if dedicated else UNKNOWN


def _share(rates_rps: Floats, peak: RepeatedPeak, alone: Alone) -> float:
    """Return the peak as a share of the dedicated peak, corrected for the speed of the host."""
    known = known_peaks(alone)
    if len(known) < len(alone):
        return np.nan
    capacity_rps = limit_changes(peak, known) * [each.rates_rps[0] for each in known]
    return float((rates_rps / capacity_rps).sum())
