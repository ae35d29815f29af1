"""Make the table `background`: the peak of one tenant while other tenants have constant rates."""

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
    """Record of a search for the peak of one tenant while other tenants have constant rates."""

    kind: ClassVar[str] = "background"


DESCRIPTION = (
    "One row per cell: one repeat of a search for the peak of one tenant while other tenants have"
    " constant rates. Columns that describe all repeats of a load line have the same value in all"
    " rows of this load line. The table is empty without an experiment `background`."
)
TITLE = "Peak beside tenants at fixed rates"
NOTE = (
    "The table shows the peak of one tenant (the searched tenant) while the other tenants have"
    " constant rates. The share of a tenant is its rate / its dedicated peak. 'Background share' is"
    " the sum of the shares of the other tenants. If the shares of all tenants add up to more than"
    " 1, one shared server carries more load than dedicated servers of the same cost. 95 %"
    " intervals are in brackets."
)
SHOWN = {
    "cell": "cell",
    "searched tenant": "searched",
    "other tenants": "background_tenants",
    "at constant rates": "background_at",
    "background load (requests/s)": "background_rps",
    "peak (requests/s)": ("peak_rps", "peak_low_rps", "peak_high_rps"),
    "background share": "background_share",
    "peak / dedicated peak": ("share", "share_low", "share_high"),
    "sum of all shares": ("sharing_ratio", "sharing_ratio_low", "sharing_ratio_high"),
    "verdict": "verdict",
    "why not": "reason",
}
SCHEMA = Schema(
    [
        *CELL,
        column("load_line", TEXT, "", "name of the load line, as in the table peaks"),
        column("searched", TEXT, "",
            "name of the tenant whose peak Perseus searches"),
        column("background_tenants", TEXT, "",
            "names of the tenants with constant rates"),
        column("background_at", TEXT, "",
            "constant rates of the other tenants in words, in requests/s or in percent of their"
            " dedicated peaks"),
        column("background_rps", REAL, "requests/s",
            "sum of the constant rates of the other tenants"),
        column("certified_rps", REAL, "requests/s",
            "certified rate of the searched tenant in this repeat"),
        column("estimate_rps", REAL, "requests/s",
            "rate of the searched tenant at the estimated peak of this repeat"),
        column("peak_rps", REAL, "requests/s",
            "rate of the searched tenant at the estimated peak: the mean over the repeats that"
            " found a peak"),
        column("peak_low_rps", REAL, "requests/s",
            f"lower end of the 95 % interval of `peak_rps` {CI}"),
        column("peak_high_rps", REAL, "requests/s",
            "upper end of the 95 % interval of `peak_rps`"),
        column("dedicated_rps", REAL, "requests/s",
            "dedicated peak of the searched tenant on the same server"),
        column("dedicated_low_rps", REAL, "requests/s",
            f"lower end of the 95 % interval of `dedicated_rps` {CI}"),
        column("dedicated_high_rps", REAL, "requests/s",
            "upper end of the 95 % interval of `dedicated_rps`"),
        column("background_share", REAL, "",
            "sum over the other tenants of (constant rate / dedicated peak). Because the speed of"
            " the host changes, Perseus first corrects the dedicated peaks to the speed that the"
            " host had in the cells of this load line (docs/explanation/sharing-ratio.md).",
               least=0),
        column("share", REAL, "",
            "peak_rps / dedicated peak of the searched tenant. The dedicated peak is corrected as"
            " in `background_share`, so it may differ from `dedicated_rps`.", least=0),
        column("share_low", REAL, "",
            f"lower end of the 95 % interval of `share` {CI}", least=0),
        column("share_high", REAL, "",
            "upper end of the 95 % interval of `share`", least=0),
        column("sharing_ratio", REAL, "",
            "sharing ratio: share + background_share. If the ratio is above 1, sharing the server"
            " saves money.", least=0),
        column("sharing_ratio_low", REAL, "",
            f"lower end of the 95 % interval of `sharing_ratio` {CI}", least=0),
        column("sharing_ratio_high", REAL, "",
            "upper end of the 95 % interval of `sharing_ratio`", least=0),
        column("verdict", TEXT, "",
            "verdict of this repeat, with the same values as in the table peaks", choices=Outcome),
        column("reason", TEXT, "", "reason for a verdict other than ok"),
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
"""Schema of the table. Columns that depend on a peak are null if no search found the peak."""


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
    """Return the sum of (rate / dedicated peak) over all tenants; NaN if a dedicated peak is
    unknown.

    The function first corrects the dedicated peaks to the speed that the host had in the cells of
    `peak`.
    """
    known = known_peaks(alone)
    if len(known) < len(alone):
        return np.nan
    capacity_rps = limit_changes(peak, known) * [each.rates_rps[0] for each in known]
    return float((rates_rps / capacity_rps).sum())
