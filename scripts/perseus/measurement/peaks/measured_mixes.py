"""Read the sharing ratios of the mixes that other cells of a frontier have measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from perseus.measurement.peaks.dedicated_peaks import SearchRecord
from perseus.peak.frontier import MeasuredMix
from perseus.peak.stats import UNKNOWN, Interval


class MixRecord(SearchRecord):
    """The keys that Perseus reads from the record.json of a mix."""

    weights: tuple[int, ...]
    speeds_rps: dict[str, tuple[float | None, ...]]


def measured_mixes(records: Sequence[Path]) -> list[MeasuredMix]:
    """Return one entry per measured mix, with its mean sharing ratio.

    The mean is over the repeats that found the limit of the server. If no repeat found the limit,
    the sharing ratio is unknown.
    """
    of_mix: dict[tuple[int, ...], list[MixRecord]] = {}
    for path in records:
        record = MixRecord.model_validate_json(path.read_bytes())
        of_mix.setdefault(record.weights, []).append(record)
    return [MeasuredMix(weights, _ratio(repeats)) for weights, repeats in of_mix.items()]


def _ratio(repeats: Sequence[MixRecord]) -> Interval:
    """Return the mean sharing ratio of the repeats of a mix, with a 95 % interval.

    The interval comes from the posterior draws of all repeats.
    """
    found = [(each.limit_scale, each.posterior_scales) for each in repeats]
    limits = [limit for limit, _ in found if limit is not None]
    if not limits:
        return UNKNOWN
    draws = [scale for limit, posterior in found if limit is not None for scale in posterior]
    low, high = np.quantile(draws, [0.025, 0.975])
    return Interval(float(np.mean(limits)), float(low), float(high))
