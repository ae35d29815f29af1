"""Compute the errors of prediction models for the sharing ratio of a mix, by cross-validation: a
prediction model predicts each measured mix from the other measured mixes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import special

from perseus.peak.predicted.ladder import Known, LadderStep, Shared, predicted
from perseus.peak.stats import Floats, Interval

FEWEST = 4
"""Least number of measured mixes from which Perseus estimates the prediction error. With four
mixes, the estimate has three degrees of freedom."""

CONFIDENCE = 0.9
"""Confidence of the interval of a prediction: one mix in ten may lie outside the interval."""

UPPER = (1 + CONFIDENCE) / 2
"""Cumulative probability at the upper end of the interval of a prediction."""


class Out(StrEnum):
    """The measurements that a cross-validation leaves out when it predicts a mix: the mix itself,
    all mixes that contain one model of the mix, or all mixes on the same server."""

    MIX = "mix"
    MODEL = "model"
    SERVER = "server"


@dataclass(frozen=True)
class Error:
    """A mix, and the relative error of its predicted sharing ratio: predicted / measured - 1."""

    shared: Shared
    error: float


def errors(
    step: LadderStep, out: Out, server: str, known: Mapping[str, Sequence[Known]]
) -> Iterator[Error]:
    """Yield the prediction errors for all mixes on `server`, except mixes of copies of one model.

    `step` is the prediction model, and `known` contains the measured mixes of each server. The
    cross-validation predicts each mix without the measurements that `out` names. The error is NaN
    if the remaining measurements are too few for a prediction. If `out` is `Out.MODEL`, the
    function yields one error for each model of each mix.
    """
    for each in known[server]:
        if not each.shared.is_of_copies:
            for left in _left(out, server, each, known):
                error = predicted(step, each.shared, left) / each.ratio - 1
                yield Error(each.shared, error)


def _left(
    out: Out, server: str, of: Known, known: Mapping[str, Sequence[Known]]
) -> Iterator[list[Known]]:
    """Yield the measured mixes from which the cross-validation predicts the mix `of`.

    Out.MIX leaves out the mix `of` only. Out.MODEL yields one list for each model of the mix `of`,
    without the mixes that contain this model. Out.SERVER leaves out all mixes on `server`.
    """
    if out is Out.MIX:
        yield [each for each in known[server] if each is not of]
    elif out is Out.MODEL:
        for model in sorted(of.shared.models):
            yield [each for each in known[server] if model not in each.shared.models]
    else:
        yield [each for other, mixes in known.items() if other != server for each in mixes]


@dataclass(frozen=True)
class Accuracy:
    """The error of a prediction model on a server, from a cross-validation over `n` measured mixes.

    `bias` is the mean, and `deviation` the standard deviation, of log(measured / predicted) over
    these mixes. `interval` and `draws` correct a predicted ratio by the factor exp(bias). `noise`
    is the standard deviation of log(measured ratio) due to the uncertainty of one measurement. If
    all mixes were measured within a quarter of an hour, the prediction errors may scatter less than
    `noise`, because the speed of the host hardly changed in this time. `missed` is the number of
    measured mixes that violate an SLA at every load. No prediction model predicts such a violation.
    Therefore each of these mixes counts as a mix outside the interval of its prediction.
    """

    step: LadderStep
    n: int
    bias: float
    deviation: float
    noise: float = 0.0
    missed: int = 0

    @property
    def is_as_good_as_measuring(self) -> bool:
        """Return whether a prediction is as precise as a measurement.

        A prediction is as precise if the 90 % interval of the prediction errors is at most as wide
        as the 90 % interval of the difference between two measurements of the same mix.
        """
        scatter, noise = self._off(self._upper, UPPER)
        return bool(scatter <= np.sqrt(2) * noise)

    @property
    def half_width(self) -> float:
        """Return the relative half-width h of a prediction interval: a predicted ratio p, after the
        correction by `bias`, has the interval from p / (1 + h) to p (1 + h)."""
        return float(np.expm1(np.max(self._off(self._upper, UPPER))))

    @property
    def _upper(self) -> float:
        """Return the cumulative probability at the upper end of a prediction interval.

        The interval must contain a share CONFIDENCE of all mixes. Mixes that violate an SLA at
        every load lie outside every interval. Therefore the interval must contain a larger share of
        the other mixes.
        """
        return (1 + CONFIDENCE * (1 + self.missed / self.n)) / 2

    def _off(self, scattered: float | Floats, noisy: float | Floats) -> tuple[Floats, Floats]:
        """Return two arrays of quantiles of log(measured / predicted) - bias.

        The first array follows from the scatter of the n prediction errors, at the cumulative
        probabilities `scattered`. The second array follows from `noise` alone, at the cumulative
        probabilities `noisy`.
        """
        wider = np.sqrt(1 + 1 / self.n)
        scatter = wider * self.deviation * special.stdtrit(self.n - 1, scattered)
        return scatter, wider * self.noise * special.ndtri(noisy)

    def interval(self, ratio: float) -> Interval:
        """Return the prediction interval for the predicted ratio `ratio`. A measured ratio lies in
        this interval with a probability of about CONFIDENCE."""
        middle = ratio * np.exp(self.bias)
        return Interval(middle, middle / (1 + self.half_width), middle * (1 + self.half_width))

    def draws(self, ratio: float, levels: Floats) -> Floats:
        """Return quantiles of a measured ratio if the predicted ratio is `ratio`. The quantiles
        have the cumulative probabilities `levels`, in (0, 1)."""
        scatter, noise = self._off(UPPER, UPPER)
        off = self._off(levels, levels)[0 if scatter > noise else 1]
        drawn: Floats = ratio * np.exp(self.bias + off)
        return drawn


def errors_by_step(known: Sequence[Known]) -> dict[LadderStep, Floats]:
    """Return the prediction errors of each prediction model; shape (mixes,) each.

    The errors do not include mixes of copies of one model. The prediction of a mix does not use the
    measurement of this mix. The error is NaN if the prediction model cannot predict the mix.
    """
    return {
        step: np.array([each.error for each in errors(step, Out.MIX, "", {"": known})])
        for step in LadderStep
    }


def of_steps_for(
    shared: Shared, known: Sequence[Known], errors_of: Mapping[LadderStep, Floats]
) -> dict[LadderStep, Floats]:
    """Return only the errors of the prediction models that can predict the mix `shared`."""
    return {
        step: off for step, off in errors_of.items() if np.isfinite(predicted(step, shared, known))
    }


def best(errors_of: Mapping[LadderStep, Floats], noise: float, missed: int = 0) -> Accuracy | None:
    """Return the accuracy of the prediction model whose errors scatter least; None if the measured
    mixes do not suffice (`why_none` states the reason).

    If the errors of several prediction models scatter equally, the function chooses the simplest
    model. `noise` is the uncertainty of the measured ratios (`noise_of`). `missed` is the number of
    mixes that violate an SLA at every load. The chosen model has the smallest scatter for the
    measured mixes, so its errors for new mixes are probably larger. Therefore `deviation` in the
    result comes from a second cross-validation. For each mix, the function again chooses a model
    and computes its bias, but only from the other mixes.
    """
    if not errors_of:
        return None
    with np.errstate(divide="ignore"):
        logs = -np.log1p(np.array(list(errors_of.values())))  # (models, mixes)
    logs[~np.isfinite(logs)] = np.nan
    enough = np.flatnonzero(np.isfinite(logs).sum(axis=1) >= FEWEST)
    if not len(enough) or np.isnan(noise):
        return None
    of_steps = logs[enough]
    chosen = int(np.argmin(_scatter(of_steps)))
    told = of_steps[chosen][np.isfinite(of_steps[chosen])]
    if CONFIDENCE * (len(told) + missed) >= len(told):
        return None
    off = _off_without_each(of_steps)
    deviation = float(np.sqrt((off**2).mean() * (1 - 1 / len(off))))
    step = list(errors_of)[enough[chosen]]
    return Accuracy(step, len(told), float(told.mean()), deviation, noise, missed)


def why_none(what: str, mixes: int, noise: float, missed: int) -> str:
    """Return the reason why `best` returns None. `what` describes the measured mixes, for example
    "other mixes"."""
    if mixes < FEWEST:
        return (
            f"a prediction needs measurements of at least {FEWEST} {what} (mixes of copies of one"
            f" model do not count), and Perseus measured {mixes}"
        )
    if np.isnan(noise):
        return f"none of the {what} has a sharing ratio whose interval has two finite ends"
    return (
        f"{missed} of the {what} missed an SLA at every load,"
        " and no prediction model can predict such a result"
    )


def _scatter(logs: Floats) -> Floats:
    """Return, for each prediction model, half the width of the prediction interval of log(measured
    / predicted) for a new mix.

    The last axis of `logs` contains the errors of one prediction model. At least two of these
    errors must be known.
    """
    n = np.isfinite(logs).sum(axis=-1)
    about = logs - np.nanmean(logs, axis=-1, keepdims=True)
    deviation = np.sqrt(np.nansum(about**2, axis=-1) / (n - 1))
    half: Floats = np.sqrt(1 + 1 / n) * deviation * special.stdtrit(n - 1, UPPER)
    return half


def _off_without_each(logs: Floats) -> Floats:
    """Return the errors of the second cross-validation that `best` describes.

    For each mix, the function chooses the prediction model whose errors scatter least over the
    other mixes. From the error of this model for the mix, the function subtracts the mean error of
    this model for the other mixes. `logs` has one row per prediction model, and one column per mix.
    """
    mixes = np.arange(logs.shape[1])
    others = np.where(np.eye(len(mixes), dtype=bool), np.nan, logs[:, None, :])
    chosen = np.argmin(_scatter(others), axis=0)
    off = logs[chosen, mixes] - np.nanmean(others[chosen, mixes], axis=-1)
    return off[np.isfinite(off)]


def noise_of(known: Sequence[Known]) -> float:
    """Return the median noise (`Known.noise`) of the measured mixes.

    The function leaves out mixes of copies of one model, and mixes whose noise is infinite or
    unknown. If no mix remains, the result is NaN.
    """
    of_each = [
        each.noise for each in known if not each.shared.is_of_copies and np.isfinite(each.noise)
    ]
    return float(np.median(of_each)) if of_each else np.nan
