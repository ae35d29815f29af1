"""Sharing ratios from interleaved measurements on one server
(docs/explanation/sharing-ratio.md).

The searched peaks of a mix and of its tenants lie minutes apart. Throughputs of the tenants
alone and together, measured within seconds, give the ratio at saturation. A simulated queue with
the same service times gives the ratio within the SLAs. The searched peaks correct it where they
contradict it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from perseus.peak.between_repeats import mean_draws
from perseus.peak.outcome import Outcome
from perseus.peak.paired import Estimate, Round, ratio_at_saturation
from perseus.peak.predicted.solo import MIN_UTILISATION
from perseus.peak.stats import Floats
from perseus.results.records import PeakRecord
from perseus.results.repeats import (
    Alone,
    Quantity,
    RepeatedPeak,
    capacities,
    dedicated_peaks,
    each_alone,
    sharing_ratio,
)

Key = tuple[str, str]
"""The key of a load line (`repeats.key`)."""

SharedServer = tuple[str, tuple[int, ...]]
"""Its scenario, and the places of the tenants that have load."""

STARTS = 0.02
"""Scale of the half-normal prior on how the ratio at saturation differs from one start of a server
to the next, of its logarithm. (Four starts on a host of two vCPUs: 0.019.)"""

MODEL_ERROR = 0.015
"""Standard deviation of the logarithm of the model's ratio around the true one, where the model
fits. (Means of 23 studies on a real host differ from it by 0.000, -0.022 and -0.017.)"""

INTERFERENCE = 0.1
"""Part of the logarithm of the ratio at saturation that adds to it: how requests of several tenants
slow each other down is known at saturation only."""

MISFIT = 0.5
"""Part that adds to it of how far a dedicated peak surely lies from the model's."""

WRONG, FAR = 0.05, 0.25
"""How likely the model does not fit at all, and the deviation of its logarithm then."""

OVERSAMPLED = 8
"""Draws of the prior for each that is kept."""

LEAST = 1e-6
"""Part of the searched scale that is left if background load takes the whole server."""


def paired_peaks(peaks: Mapping[Key, RepeatedPeak], seed: int) -> dict[Key, RepeatedPeak]:
    """The same peaks; shared lines get draws that follow from their paired ratios."""
    dedicated = dedicated_peaks(list(peaks.values()))
    pooled = _at_saturation(peaks.values(), seed)
    found = {}
    for of, peak in peaks.items():
        rng = np.random.default_rng([seed, zlib.crc32(f"paired {of}".encode())])
        alone = each_alone(peak, dedicated)
        ratio = pooled.get(_server_of(peak))
        found[of] = peak if ratio is None else _paired(peak, alone, ratio, rng)
    return found


def _server_of(peak: RepeatedPeak) -> SharedServer:
    return peak.task.scenario, tuple(peak.loaded.tolist())


def _at_saturation(peaks: Iterable[RepeatedPeak], seed: int) -> dict[SharedServer, Floats]:
    """Draws of the logarithm of the saturation ratio of a usual server, from all cells with
    mixes of the same tenants; each has its own server."""
    cells: dict[SharedServer, list[Estimate]] = {}
    draws = {}
    for peak in peaks:
        if peak.is_dedicated or not peak.is_known:
            continue
        for record in _with_rounds(peak):
            estimate = ratio_at_saturation(_rounds(record))
            if np.isfinite(estimate.error):
                cells.setdefault(_server_of(peak), []).append(estimate)
                draws[_server_of(peak)] = len(peak.scale_draws)
    return {
        of: mean_draws(
            np.array([each.log for each in found]),
            np.square([each.error for each in found]),
            np.random.default_rng([seed, zlib.crc32(f"starts {of}".encode())]),
            draws[of],
            prior=STARTS,
        )
        for of, found in cells.items()
    }


def _with_rounds(peak: RepeatedPeak) -> list[PeakRecord]:
    """Repeats with a limit and with rounds."""
    return [
        record
        for record in peak.records
        if record.has_limit
        and record.outcome != Outcome.PREDICTED
        and record.rounds
        and np.isfinite(record.model.scale)
    ]


def _rounds(record: PeakRecord) -> list[Round]:
    return [Round(each.alone_rps, each.together_rps) for each in record.rounds]


def _paired(
    peak: RepeatedPeak, alone: Alone, saturation: Floats, rng: np.random.Generator
) -> RepeatedPeak:
    searched = sharing_ratio(peak, alone)
    records = _with_rounds(peak)
    if not (searched.is_known and records):
        return peak
    logs = np.mean([_model_log_ratio(each, peak.loaded, saturation) for each in records], axis=0)
    spread = _spread(peak, alone, records)
    ratio = _corrected(logs, spread, searched, rng)
    return _with_ratio(peak, alone, ratio)


def _model_log_ratio(record: PeakRecord, loaded: NDArray[np.int64], saturation: Floats) -> Floats:
    """Draws of the logarithm of sum(r_i / C_i), all from the model of this cell.

    Its limit is corrected from the saturation ratio of its own server to that of a usual server.
    A limit lies a constant below what the busy server answers, so that it changes by the power 1
    / utilisation.
    """
    own = ratio_at_saturation(_rounds(record)).log
    power = 1 / min(max(record.model.utilisation, MIN_UTILISATION), 1.0)
    scales = record.model.scale * np.exp(power * (saturation - own))
    base, direction, alone_rps = (
        np.array(values)[loaded]
        for values in (record.line.base_rps, record.line.direction_rps, record.model.alone_rps)
    )
    ratios = (base / alone_rps).sum() + scales * (direction / alone_rps).sum()
    return np.log(ratios)


def _spread(peak: RepeatedPeak, alone: Alone, records: Sequence[PeakRecord]) -> float:
    """Standard deviation of the error of a model that fits."""
    at_saturation = float(np.mean([ratio_at_saturation(_rounds(each)).log for each in records]))
    discipline = float(np.mean([each.model.scale_error for each in records]))
    misfits = [0.0]
    for i in peak.loaded:
        one = alone[i]
        if one is None:
            continue
        models = [r.model.scale for r in one.records if r.has_limit and np.isfinite(r.model.scale)]
        if models and one.is_known:
            off = np.log(one.scale_draws / np.mean(models))
            misfits.append(max(0.0, abs(float(np.median(off))) - 2 * float(off.std())))
    return float(
        np.sqrt(
            MODEL_ERROR**2
            + (INTERFERENCE * at_saturation) ** 2
            + discipline**2
            + (MISFIT * max(misfits)) ** 2
        )
    )


def _corrected(
    logs: Floats, spread: float, searched: Quantity, rng: np.random.Generator
) -> Quantity:
    """The prior from the model, which usually fits and sometimes does not, times the likelihood
    of the searched ratio."""
    prior = np.tile(logs, OVERSAMPLED)
    wrong = rng.random(len(prior)) < WRONG
    prior = prior + rng.standard_normal(len(prior)) * np.where(wrong, FAR, spread)
    of_search = np.log(searched.draws)
    centre, deviation = float(np.median(of_search)), float(of_search.std())
    density = np.exp(-0.5 * ((prior - centre) / deviation) ** 2) + 1e-300
    drawn = rng.choice(prior, len(logs), p=density / density.sum())
    return replace(searched, value=float(np.exp(np.median(drawn))), draws=np.exp(drawn))


def _with_ratio(peak: RepeatedPeak, alone: Alone, ratio: Quantity) -> RepeatedPeak:
    """The peak whose shares of dedicated peaks add up to this ratio, draw by draw."""
    capacity, capacity_draws = capacities(peak, alone)
    used = [record for record in peak.records if record.has_limit]
    base = np.mean([record.line.base_rps for record in used], axis=0)
    above = peak.rates_rps - base  # what rises along the line
    loaded = peak.loaded

    def multiple(of: Floats | float, capacity_rps: Floats) -> Floats:
        background = (base[loaded] / capacity_rps).sum(axis=-1)
        rises = (above[loaded] / capacity_rps).sum(axis=-1)
        return np.maximum((of - background) / rises, LEAST)

    value = float(multiple(ratio.value, capacity))
    draws = multiple(ratio.draws, capacity_draws)
    return replace(
        peak,
        scale=value * peak.scale,
        scale_draws=draws * peak.scale,
        rates_rps=base + value * above,
        rates_draws_rps=base + draws[:, None] * above,
        correction=value,
    )
