"""Compute the cost of inferences in money and energy (docs/explanation/sharing-ratio.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perseus.results.repeats import RepeatedPeak

JOULES_PER_KWH = 3.6e6


def usd_per_million(usd_per_hour: float, images_per_s: float) -> float:
    """Return the cost in USD of a million inferences (of one image each) on a server that costs
    `usd_per_hour` and always serves `images_per_s`; infinite if the server serves none."""
    return usd_per_hour / 3600 * 1e6 / images_per_s if images_per_s else np.inf


@dataclass(frozen=True)
class Energy:
    """Energy of one inference at the certified rate, as the mean over the repeats, in joules; NaN
    if unknown. `of` names the hardware whose energy is in `joules`."""

    joules: float
    of: str

    def usd_per_million(self, usd_per_kwh: float | None) -> float:
        """Return the cost of the electricity for a million inferences in USD; NaN if the energy or
        the price of electricity is unknown."""
        price = np.nan if usd_per_kwh is None else usd_per_kwh
        return self.joules * 1e6 / JOULES_PER_KWH * price


def energy_per_inference(peak: RepeatedPeak) -> Energy:
    """Return the energy per inference: the sum over all GPUs of the server, and the processors and
    the memory of the host.

    The sum leaves out hardware whose power is unknown. But if the server has GPUs whose power is
    unknown, the result is NaN, because the GPUs use most of the energy.
    """
    watts = {
        "GPUs": np.array([record.gpu_watts for record in peak.records]),
        "processors and memory": np.array([record.host_watts for record in peak.records]),
    }
    counted = [name for name, each in watts.items() if np.isfinite(each).any()]
    rates = [
        record.rates_rps(record.certified_scale) @ peak.images_per_request
        for record in peak.records
    ]
    joules = sum((watts[name] for name in counted), np.zeros(len(rates))) / np.array(rates)
    known = joules[np.isfinite(joules)]
    if not counted or not len(known) or (peak.task.server.gpus and "GPUs" not in counted):
        return Energy(np.nan, "")
    return Energy(float(known.mean()), " + ".join(counted))
