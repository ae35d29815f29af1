"""What inferences cost in money and energy (docs/method.md, "Sharing, cost and saving")."""

from __future__ import annotations

import numpy as np

from perseus.results.repeats import RepeatedPeak


def usd_per_million(usd_per_hour: float, images_per_s: float) -> float:
    """USD for a million inferences, of an image each, on a server that always serves that rate."""
    return usd_per_hour / 3600 * 1e6 / images_per_s if images_per_s else np.inf


def joules_per_inference(peak: RepeatedPeak) -> float:
    """Mean of the repeats, each at its certified rate; NaN where no power was measured."""
    each = [
        record.gpu_watts / (record.rates_rps(record.certified_scale) @ peak.images_per_request)
        for record in peak.records
    ]
    known = [joules for joules in each if np.isfinite(joules)]
    return float(np.mean(known)) if known else np.nan
