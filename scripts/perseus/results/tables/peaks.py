"""Make the table `peaks`: the peak of each load line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.results.client_load import client_load
from perseus.results.columns import CI, LOAD_LINE, PRECISION, REPEATS, load_line, with_ends
from perseus.results.records import PeakRecord, Row
from perseus.results.repeats import Alone, Quantity, RepeatedPeak
from perseus.results.schema import Schema, ascending, column, holds
from perseus.results.study_results import StudyResults

if TYPE_CHECKING:  # needed only for type checks
    import pandas as pd

RECORD = PeakRecord
DESCRIPTION = "One row per load line. All rates are totals over the tenants."


def _is_answered(
    verdict: pd.Series, certified_rps: pd.Series, estimate_rps: pd.Series
) -> pd.Series:
    return (verdict != "ok") | (certified_rps.notna() & estimate_rps.notna())


SCHEMA = Schema(
    [
        *LOAD_LINE,
        column("device", TEXT, "",
            "device that computes the neural networks: cpu or gpu", choices=("cpu", "gpu")),
        column("runtime", TEXT, "",
            "runtime that executes the neural networks: the configured runtime of the server, or"
            " the backend of a `served_model`"),
        PRECISION,
        column("certified_rps", REAL, "requests/s",
            "lowest certified rate of all repeats, summed over all tenants. Null if a repeat has no"
            " certified rate."),
        column("estimate_rps", REAL, "requests/s",
            "estimated peak, summed over all tenants: the mean over the repeats that found a"
            " peak"),
        column("ci_low_rps", REAL, "requests/s",
            f"lower end of the 95 % interval of `estimate_rps` {CI}"),
        column("ci_high_rps", REAL, "requests/s",
            f"upper end of the 95 % interval of `estimate_rps` {CI}"),
        column("cliff", TEXT, "",
            "description of the cliff in the first repeat that has a cliff. At a cliff, an increase"
            " of the load by at most 25 % raises the latency by a factor of more than 20, so that a"
            " tenant misses its SLA. Empty if no repeat has a cliff."),
        column("other_load", TEXT, "",
            "message that other processes used more than 10 % of the server's cores or GPUs in a"
            " valid window. The message states their largest load in the first repeat with such a"
            " window. Empty if there is no such window."),
        column("first_failing_rps", REAL, "requests/s",
            "lowest rate above the certified rate at which a window failed, summed over all"
            " tenants"),
        column("certified_scale", REAL, "",
            "load factor s of the certified rate on the load line", least=0),
        column("estimate_scale", REAL, "",
            "load factor s of the estimated peak on the load line", least=0),
        column("ci_low_scale", REAL, "",
            f"lower end of the 95 % interval of `estimate_scale` {CI}", least=0),
        column("ci_high_scale", REAL, "",
            f"upper end of the 95 % interval of `estimate_scale` {CI}", least=0),
        column("first_failing_scale", REAL, "",
            "load factor s of `first_failing_rps` on the load line",
               least=0),
        column("sharing_ratio", REAL, "",
            "sharing ratio: the sum over the tenants of (rate at the estimated peak / dedicated"
            " peak). A shared server at its peak carries as much load as this number of dedicated"
            " servers at their peaks.", least=0),
        column("sharing_ratio_low", REAL, "",
            f"lower end of the 95 % interval of `sharing_ratio` {CI}", least=0),
        column("sharing_ratio_high", REAL, "",
            f"upper end of the 95 % interval of `sharing_ratio` {CI}", least=0),
        column("certified_sharing_ratio", REAL, "",
            "sharing ratio of certified rates: the sum over the tenants of (certified rate /"
            " certified rate on a dedicated server)", least=0),
        column("client_load", REAL, "",
            "load of the client: the sum over the tenants of (rate at the estimated peak / client"
            " ceiling). If this load is far below 1, the client did not limit the result. Null if a"
            " client ceiling is unknown or unreliable.", least=0),
        column("requests", WHOLE, "requests",
            "number of requests in all windows of all repeats, without the requests in settling"
            " times"),
        column("measured_s", REAL, "s", "total length of all windows of all repeats", null=False),
    ],
    key=("scenario", "load_line"),
    holds=[
        *REPEATS,
        ascending("ci_low_rps", "estimate_rps", "ci_high_rps"),
        ascending("ci_low_scale", "estimate_scale", "ci_high_scale"),
        ascending("sharing_ratio_low", "sharing_ratio", "sharing_ratio_high"),
        holds(
            "certified_rps < first_failing_rps",
            lambda certified_rps, first_failing_rps: certified_rps < first_failing_rps,
        ),
        holds(
            "a row with verdict ok has a certified rate and an estimate", _is_answered, null=True
        ),
    ],
)  # fmt: skip


def rows(results: StudyResults) -> Iterator[Row]:
    for peak in results.peaks.values():
        load = client_load(peak, results.ceilings, results.ceiling_problems)
        yield _row(peak, results.alone(peak), results.sharing_ratio(peak), load)


def _row(peak: RepeatedPeak, alone: Alone, ratio: Quantity, client_load: float) -> Row:
    certified_scale, certified = peak.certified
    failing_scale, failing_rps = peak.first_failing
    sure = np.array([np.nan if each is None else each.certified[0] for each in alone])
    loaded = certified != 0  # a tenant that is not in the mix uses no share of its peak
    return {
        **load_line(peak),
        "device": peak.task.server.device,
        "runtime": runtime(peak),
        "precision": peak.precision,
        "certified_rps": float(certified.sum()),
        **with_ends("estimate_rps", peak.total().interval(), ("ci_low_rps", "ci_high_rps")),
        "first_failing_rps": failing_rps,
        "cliff": next((r.cliff for r in peak.records if r.cliff), ""),
        "other_load": next((r.other_load for r in peak.records if r.other_load), ""),
        "certified_scale": certified_scale,
        **with_ends("estimate_scale", peak.point.interval(), ("ci_low_scale", "ci_high_scale")),
        "first_failing_scale": failing_scale,
        **with_ends("sharing_ratio", ratio.interval(), ("sharing_ratio_low", "sharing_ratio_high")),
        "certified_sharing_ratio": float((certified[loaded] / sure[loaded]).sum()),
        "client_load": client_load,
        "requests": sum(record.requests for record in peak.records),
        "measured_s": float(sum(record.measured_s for record in peak.records)),
    }


def runtime(peak: RepeatedPeak) -> str:
    """Return the runtimes that execute the models of a load line, joined by " + "."""
    served = peak.records[0].served_models
    backends = {name: model.backend for name, model in served.items()}
    of_tenants = (backends.get(name, peak.task.server.runtime) for name in peak.tenants)
    return " + ".join(dict.fromkeys(of_tenants))
