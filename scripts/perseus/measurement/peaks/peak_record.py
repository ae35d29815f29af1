"""Fill the keys of record.json that state the peak of a cell.

`results.records.PeakRecord` describes these keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from perseus.measurement.peaks.wanted_peak import WantedPeak
from perseus.peak.load_line import LoadLine, load_line
from perseus.peak.outcome import Outcome, Peak, no_peak


def peak_record(
    wanted: WantedPeak, names: Sequence[str], peak: Peak, line: LoadLine
) -> dict[str, Any]:
    """Return the keys of record.json that state the result of a search along a load line."""
    return {
        "outcome": peak.outcome,
        "reason": peak.reason,
        "line": asdict(line),
        "weights": wanted.run.weights,
        "dedicated_rps": wanted.dedicated_rps,
        "estimate_scale": peak.estimate,
        "certified_scale": peak.certified,
        "certified_window": peak.certified_window,
        "first_failing_scale": peak.first_failing,
        "cliff": peak.cliff,
        "other_load": peak.other_load,
        "speeds_rps": dict(zip(names, peak.speeds_rps, strict=False)),
        "work_ms": {
            name: np.round(1000 * work_s, 4).tolist()
            for name, work_s in zip(names, peak.work_s, strict=False)
        },
        "rounds": [asdict(each) for each in peak.rounds],
        "model": asdict(peak.model),
        "posterior_scales": [round(scale, 6) for scale in peak.posterior.tolist()],
    }


def without_peak(wanted: WantedPeak, names: Sequence[str]) -> dict[str, Any]:
    """Return the same keys as `peak_record` for a cell without a server.

    The measured values are unknown.
    """
    unknown_ms = dict.fromkeys(names, np.nan)
    line, _ = load_line(wanted.run, names, wanted.dedicated_rps, unknown_ms)
    return peak_record(wanted, names, no_peak(Outcome.FAILED, ""), line)
