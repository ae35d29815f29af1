"""Compute sharing ratios from measurements on one server that follow each other within seconds
(docs/explanation/sharing-ratio.md).

The searches for the peaks of a mix and of its tenants run minutes apart, and the speed of the host
changes meanwhile. A sharing ratio from these peaks is therefore inexact. The module finds a better
ratio in three steps:

1. It computes the sharing ratio at saturation: the sum over the tenants of (throughput while all
   tenants have load / throughput while only this tenant has load). Perseus measures both
   throughputs in a round, within seconds of each other.
2. A simulated queue with the measured service times converts the ratio at saturation into the
   sharing ratio within the SLAs (the simulated ratio).
3. If the peaks from the searches contradict the simulated ratio, the module corrects the simulated
   ratio.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

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
"""Name of the scenario and name of the load line, as `repeats.key` returns them."""

SharedServer = tuple[str, tuple[int, ...]]
"""A server with certain tenants: the name of the scenario, and the indices of the tenants with
load."""

STARTS = 0.02
"""The logarithm of the sharing ratio at saturation varies between starts of a server. The standard
deviation of this variation has a half-normal prior with the scale STARTS. (Four starts on a host
with two vCPUs had a standard deviation of 0.019.)"""

MODEL_ERROR = 0.015
"""Least standard deviation of the logarithmic error of a simulated sharing ratio, if the queueing
model fits. (For three mixes on a real host, the mean sharing ratio from the searches of 23 studies
differs from the simulated sharing ratio by 0.000, -0.022 and -0.017.)"""

INTERFERENCE = 0.1
"""One part of the error of the queueing model is INTERFERENCE x (the logarithm of the sharing ratio
at saturation). The reason: Perseus measures how much tenants slow each other down only at
saturation, and not at the peak."""

MISFIT = 0.5
"""One part of the error of the queueing model is MISFIT x (the largest misfit of all tenants). The
misfit of a tenant is |log(dedicated peak / simulated limit)|, minus two standard deviations of this
logarithm. A negative misfit counts as 0."""

WRONG, FAR = 0.05, 0.25
"""WRONG is the prior probability that the queueing model does not fit a server at all. In this
case, the standard deviation of the logarithmic error of a simulated sharing ratio is FAR."""

ALIKE = 0.5
"""Correlation between the errors of the simulated sharing ratios of two mixes on one server, if the
queueing model does not fit."""

LEAST = 1e-6
"""Smallest factor by which the module multiplies a load factor. The module uses LEAST if the
constant part of the load line alone reaches the corrected sharing ratio."""


def paired_peaks(peaks: Mapping[Key, RepeatedPeak], seed: int) -> dict[Key, RepeatedPeak]:
    """Return all peaks, with corrected estimates and draws for shared load lines.

    The corrected values follow from the sharing ratios that this module computes. Dedicated peaks
    stay unchanged, as do the peaks of load lines for which the module finds no sharing ratio.
    """
    dedicated = dedicated_peaks(list(peaks.values()))
    pooled = _at_saturation(peaks.values(), seed)
    paired: dict[SharedServer, dict[Key, _Line]] = {}
    for of, peak in peaks.items():
        server, records = _server_of(peak), _with_rounds(peak)
        if server not in pooled or not records:
            continue
        alone = each_alone(peak, dedicated)
        if (searched := sharing_ratio(peak, alone)).is_known:
            line = _line(peak, alone, records, pooled[server], searched)
            paired.setdefault(server, {})[of] = line
    found = dict(peaks)
    for server, lines in paired.items():
        rng = np.random.default_rng([seed, zlib.crc32(f"paired {server}".encode())])
        for (of, line), ratio in zip(
            lines.items(), _corrected(list(lines.values()), rng), strict=True
        ):
            found[of] = _with_ratio(peaks[of], line.alone, ratio)
    return found


def _server_of(peak: RepeatedPeak) -> SharedServer:
    return peak.task.scenario, tuple(peak.loaded.tolist())


def _at_saturation(peaks: Iterable[RepeatedPeak], seed: int) -> dict[SharedServer, Floats]:
    """For each shared server, return draws of the logarithm of its sharing ratio at saturation.

    The draws are for an average start of the server. Perseus restarts the server for each cell, and
    the function combines the cells of all mixes of the same tenants.
    """
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
    """Return the measured repeats from which the module can compute a sharing ratio: those with a
    limit from the search, rounds of saturation probes, and a simulated limit."""
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


@dataclass(frozen=True)
class _Line:
    """A load line with two values of its sharing ratio: the simulated ratio, and the ratio from the
    searches.

    `alone` has the dedicated peaks of the tenants. `logs` has draws of the logarithm of the
    simulated ratio. `spread` is the standard deviation of the error of this logarithm, if the
    queueing model fits. `searched` is the sharing ratio from the searches.
    """

    alone: Alone
    logs: Floats
    spread: float
    searched: Quantity


def _line(
    peak: RepeatedPeak,
    alone: Alone,
    records: Sequence[PeakRecord],
    saturation: Floats,
    searched: Quantity,
) -> _Line:
    logs = np.mean([_model_log_ratio(each, peak.loaded, saturation) for each in records], axis=0)
    return _Line(alone, logs, _spread(peak, alone, records), searched)


def _model_log_ratio(record: PeakRecord, loaded: NDArray[np.int64], saturation: Floats) -> Floats:
    """Return draws of the logarithm of a cell's simulated sharing ratio, for an average start.

    The simulation uses the service times of the cell, and thus of one start of the server. To
    convert the simulated limit to an average start, the function multiplies the limit by
    q ** (1 / utilisation). Here, q is (sharing ratio at saturation for an average start / sharing
    ratio at saturation in this cell). The exponent assumes that all starts have the same difference
    between the saturation throughput and the limit.
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
    """Return the standard deviation of the logarithmic error of a simulated sharing ratio, if the
    queueing model fits. The error has four independent parts."""
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


def _corrected(lines: Sequence[_Line], rng: np.random.Generator) -> list[Quantity]:
    """Return posterior draws of the sharing ratios of all load lines of one server.

    The prior comes from the simulated ratios. The queueing model fits either all mixes of the
    server (with probability 1 - WRONG) or none (with probability WRONG). On a logarithmic scale,
    the prior is therefore a mixture of two normal distributions.

    The likelihood comes from the sharing ratios of the searches, and is a normal distribution on
    this scale. Two of these ratios have correlated errors if they use the same dedicated peak. The
    posterior is a mixture of two normal distributions, like the prior.
    """
    of_model, of_searches = (
        np.array(values)
        for values in (
            [each.logs for each in lines],
            [np.log(each.searched.draws) for each in lines],
        )
    )
    seen, error = np.median(of_searches, axis=1), np.atleast_2d(np.cov(of_searches))
    count, draws = of_model.shape
    fits = np.diag(np.square([each.spread for each in lines]))
    fails = FAR**2 * (ALIKE + (1 - ALIKE) * np.eye(count))
    log_evidence, drawn = [], []
    for chance, model_error in ((1 - WRONG, fits), (WRONG, fails)):
        prior = np.atleast_2d(np.cov(of_model)) + model_error
        off, both = seen - of_model.mean(axis=1), prior + error
        gain = np.linalg.solve(both, prior).T
        centre, left = of_model.mean(axis=1) + gain @ off, prior - gain @ prior
        log_evidence.append(
            np.log(chance) - 0.5 * (np.linalg.slogdet(both)[1] + off @ np.linalg.solve(both, off))
        )
        drawn.append(rng.multivariate_normal(centre, left, draws, method="eigh").T)
    model_fails = rng.random(draws) < special.expit(log_evidence[1] - log_evidence[0])
    logs = np.where(model_fails, drawn[1], drawn[0])
    return [
        replace(line.searched, value=float(np.exp(np.median(each))), draws=np.exp(each))
        for line, each in zip(lines, logs, strict=True)
    ]


def _with_ratio(peak: RepeatedPeak, alone: Alone, ratio: Quantity) -> RepeatedPeak:
    """Change the load factor of the peak, in the estimate and in each draw, such that the sharing
    ratio is `ratio`. Return the changed peak."""
    capacity, capacity_draws = capacities(peak, alone)
    used = [record for record in peak.records if record.has_limit]
    base = np.mean([record.line.base_rps for record in used], axis=0)
    above = peak.rates_rps - base  # the rates without the constant part of the load line
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
