"""Compare the settings of a grid, and choose the cheapest setting that exceeds no limit in
`at_most` (docs/explanation/grids.md).

A setting is one combination of the configured values that the grid varies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perseus.peak.outcome import Outcome
from perseus.peak.stats import Floats
from perseus.peak.window import Phase
from perseus.results.costs import energy_per_inference, usd_per_million
from perseus.results.records import number
from perseus.results.repeats import NOTHING, Quantity, RepeatedPeak, known_peaks
from perseus.results.study_results import StudyResults
from perseus.study.tasks.tables import GridQuestion, GridSetting


@dataclass(frozen=True)
class Contender:
    """One setting of a grid, with its results.

    `peak` is the measured peak, or None if the setting was not measured. `inferences` is the number
    of inferences/s at the peak, computed with the weights from `inferences_per_request`. `usd` is
    the cost of a million inferences in USD. `measured` has the quantities that `at_most` may limit,
    by the names of their columns in the table `grid`. A quantity without a measurement is NaN.
    `excluded` is the reason why the setting cannot be recommended; otherwise empty.
    """

    of: GridSetting
    peak: RepeatedPeak | None
    inferences: Quantity
    usd: Quantity
    measured: Mapping[str, float]
    excluded: str


@dataclass(frozen=True)
class GridComparison:
    """The ranking of all settings for one question: which setting is best for a model or a mix.

    `ranked` has the settings that can be recommended, the cheapest first. `unranked` has all other
    settings. For each ranked setting, `probabilities` has the probability that the setting is the
    cheapest, and `on_front` says whether the setting is on the Pareto front of cost, latency and
    throughput. All probabilities are NaN if the interval of a cost begins at 0 or ends at infinity.
    """

    question: GridQuestion
    ranked: tuple[Contender, ...]
    unranked: tuple[Contender, ...]
    probabilities: tuple[float, ...]
    on_front: tuple[bool, ...]

    @property
    def mix(self) -> str:
        """Description of the load line, with the names that the tenants have in the configuration
        (without the setting)."""
        return self._peak.mix_of(self.question.tenants)

    @property
    def preset(self) -> str:
        """Preset with which Perseus measured all settings of the comparison."""
        return self._peak.task.preset

    @property
    def _peak(self) -> RepeatedPeak:
        peaks = (each.peak for each in (*self.ranked, *self.unranked))
        return next(peak for peak in peaks if peak is not None)


def comparisons(results: StudyResults) -> Iterator[GridComparison]:
    """For each model or mix of a grid, yield the comparison of the settings, unless no setting was
    measured."""
    for question in results.task.grids:
        peaks = [results.peaks.get((each.scenario, each.load_line)) for each in question.settings]
        if any(peak is not None for peak in peaks):
            yield compare(question, _contenders(question, peaks, results))


def compare(question: GridQuestion, contenders: Sequence[Contender]) -> GridComparison:
    """Return the comparison of all settings, with a ranking by cost."""
    fit = [each for each in contenders if not each.excluded]
    ranked = sorted(fit, key=lambda each: each.usd.value)
    return GridComparison(
        question,
        tuple(ranked),
        tuple(each for each in contenders if each.excluded),
        cheapest([each.usd for each in ranked]),
        on_front(np.array([_objectives(each) for each in ranked]).reshape(-1, 3)),
    )


def cheapest(costs: Sequence[Quantity]) -> tuple[float, ...]:
    """For each setting, return the probability that the setting is the cheapest: the share of the
    joint draws in which its cost is the lowest.

    `costs` has the cost of each setting. If the interval of a cost begins at 0 or ends at infinity,
    all probabilities are NaN.
    """
    if any(cost.open_below or cost.open_above for cost in costs):
        return (np.nan,) * len(costs)
    if not costs:
        return ()
    draws = np.array([cost.draws for cost in costs])
    shares = np.bincount(draws.argmin(axis=0), minlength=len(costs)) / draws.shape[1]
    return tuple(map(float, shares))


def on_front(points: Floats) -> tuple[bool, ...]:
    """Return for each point whether it is on the Pareto front, where smaller values are better.

    `points` has shape (n, objectives).
    """
    no_worse = np.all(points[:, None, :] <= points[None, :, :], axis=2)
    better = np.any(points[:, None, :] < points[None, :, :], axis=2)
    dominated: npt.NDArray[np.bool_] = np.any(no_worse & better, axis=0)
    return tuple(map(bool, ~dominated))


def _objectives(of: Contender) -> tuple[float, float, float]:
    return of.usd.value, of.measured["p95_ms"], -of.inferences.value


def _contenders(
    question: GridQuestion, peaks: Sequence[RepeatedPeak | None], results: StudyResults
) -> list[Contender]:
    worth = inferences_per_request([peak for peak in peaks if peak is not None], results)
    found = []
    for setting, peak in zip(question.settings, peaks, strict=True):
        inferences, usd, measured = NOTHING, NOTHING, dict[str, float]()
        if peak is not None:
            inferences = peak.total(worth)
            usd = _usd(inferences, setting.server, results)
            measured = {
                "p95_ms": _p95_ms(peak, results),
                "relative_error": _relative_error(peak),
                "joules_per_inference": energy_per_inference(peak).joules,
            }
        excluded = _excluded(setting, peak, usd, measured, question.at_most)
        found.append(Contender(setting, peak, inferences, usd, measured, excluded))
    return found


def inferences_per_request(peaks: Sequence[RepeatedPeak], results: StudyResults) -> Floats:
    """Return the weight of each tenant's requests, as a number of inferences, shape (T,).

    The costs of all settings must refer to the same work. But in a mix, the rates are in proportion
    to the dedicated peaks, which differ between the settings. All settings therefore use the same
    weights: the weight of a tenant is in proportion to 1 / (its dedicated peak), the cost of a
    request on a dedicated server.

    The dedicated peaks come from the first setting with a known peak of the mix and known dedicated
    peaks. At the peak of the mix in this setting, the weighted sum of the rates equals the number
    of inferences/s. If the tenant is alone, or if no setting has these peaks, the weights are the
    numbers of images per request.
    """
    for peak in peaks:
        known = known_peaks(results.alone(peak))
        if peak.is_known and len(known) == len(peak.tenants):
            alone_rps = np.array([each.rates_rps[0] for each in known])
            inferences = peak.rates_rps @ peak.images_per_request
            return np.asarray(inferences / (peak.rates_rps / alone_rps).sum() / alone_rps)
    return peaks[0].images_per_request


def _usd(inferences: Quantity, server: str, results: StudyResults) -> Quantity:
    usd_per_hour = results.task.prices[server].usd_per_hour(results.task.pricing[0])
    if usd_per_hour is None or not inferences.is_known:
        return NOTHING
    return inferences.dividing(usd_per_million(usd_per_hour, 1.0))


def _p95_ms(peak: RepeatedPeak, results: StudyResults) -> float:
    """Return the highest p95 latency of all repeats and of all tenants with load, at the certified
    rates."""
    rows = (row for record in peak.records for row in results.certified_windows[record.folder])
    loaded = (row for row in rows if row["phase"] != Phase.ALONE and row["offered_rps"])
    return float(np.max([number(row["p95_ms"]) for row in loaded] or [np.nan]))


def _relative_error(peak: RepeatedPeak) -> float:
    """Return the largest relative error of all repeats and tenants; NaN if an error is unknown."""
    errors = [error for record in peak.records for error in record.relative_errors.values()]
    return float(np.max(errors or [np.nan]))


def _excluded(
    setting: GridSetting,
    peak: RepeatedPeak | None,
    usd: Quantity,
    measured: Mapping[str, float],
    at_most: Mapping[str, float],
) -> str:
    if peak is None:
        return setting.why_not or "not measured"
    if peak.verdict != Outcome.OK:
        return f"{peak.verdict.replace('_', ' ')}: {peak.reason}"
    if not usd.is_known:
        return "its cost is unknown"
    broken = [_broken(measured[key], key, most) for key, most in at_most.items()]
    return "; ".join(filter(None, broken))


def _broken(value: float, key: str, most: float) -> str:
    if value <= most:
        return ""
    found = "was not measured" if np.isnan(value) else f"is {value:.3g}"
    return f"{key} {found}, but at_most limits it to {most:g}"
