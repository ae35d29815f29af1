"""Errors of predictions: each measured mix is predicted without its own measurement
(cross-validation)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import special

from perseus.peak.predicted.ladder import Known, LadderStep, Shared, predicted
from perseus.peak.stats import Floats, Interval

FEWEST = 4
"""Least number of measured mixes for the error of a prediction: three degrees of freedom."""

CONFIDENCE = 0.9
"""Confidence of the interval of a prediction: one mix in ten may be outside."""

UPPER = (1 + CONFIDENCE) / 2
"""Level of the upper end of that interval."""


class Out(StrEnum):
    """The data that are left out when a mix is predicted."""

    MIX = "mix"
    MODEL = "model"
    SERVER = "server"


@dataclass(frozen=True)
class Error:
    """A mix, and its predicted ratio / measured ratio - 1."""

    shared: Shared
    error: float


def errors(
    step: LadderStep, out: Out, server: str, known: Mapping[str, Sequence[Known]]
) -> Iterator[Error]:
    """Yield errors for every mix of different models; `known` is by server.

    The error is NaN if a prediction model cannot predict the mix from the remaining data. If a
    model is left out, there is one error for each model of the mix.
    """
    for each in known[server]:
        if not each.shared.is_of_copies:
            for left in _left(out, server, each, known):
                error = predicted(step, each.shared, left) / each.ratio - 1
                yield Error(each.shared, error)


def _left(
    out: Out, server: str, of: Known, known: Mapping[str, Sequence[Known]]
) -> Iterator[list[Known]]:
    """The data without the mix, without each of its models, or without the server."""
    if out is Out.MIX:
        yield [each for each in known[server] if each is not of]
    elif out is Out.MODEL:
        for model in sorted(of.shared.models):
            yield [each for each in known[server] if model not in each.shared.models]
    else:
        yield [each for other, mixes in known.items() if other != server for each in mixes]


@dataclass(frozen=True)
class Accuracy:
    """The error of a prediction model on a server, from n measured mixes that were left out in
    turn.

    `bias` and `deviation` are of log(measured / predicted); the bias corrects later predictions.
    `noise` is the error of the measured ratios: the scatter of a few mixes that were measured
    within a quarter of an hour may underestimate it. `missed` more mixes carried nothing, which no
    prediction model covers: this many predictions are outside of any interval.
    """

    step: LadderStep
    n: int
    bias: float
    deviation: float
    noise: float = 0.0
    missed: int = 0

    @property
    def is_as_good_as_measuring(self) -> bool:
        """Whether nine in ten predictions are as close to a measurement as a second measurement
        would be."""
        scatter, noise = self._off(self._upper, UPPER)
        return bool(scatter <= np.sqrt(2) * noise)

    @property
    def half_width(self) -> float:
        """Half the width of the interval of a prediction, relative; the wider, upper half."""
        return float(np.expm1(np.max(self._off(self._upper, UPPER))))

    @property
    def _upper(self) -> float:
        """Return the quantile of the errors at which CONFIDENCE of all mixes, including those
        without a limit, lie within the interval."""
        return (1 + CONFIDENCE * (1 + self.missed / self.n)) / 2

    def _off(self, scattered: float | Floats, noisy: float | Floats) -> tuple[Floats, Floats]:
        """Quantiles of log(measured / predicted) around the bias, from the scatter of n errors
        and the noise of measured ratios."""
        wider = np.sqrt(1 + 1 / self.n)
        scatter = wider * self.deviation * special.stdtrit(self.n - 1, scattered)
        return scatter, wider * self.noise * special.ndtri(noisy)

    def interval(self, ratio: float) -> Interval:
        """Interval of the measured ratio, if the model predicts `ratio`."""
        middle = ratio * np.exp(self.bias)
        return Interval(middle, middle / (1 + self.half_width), middle * (1 + self.half_width))

    def draws(self, ratio: float, levels: Floats) -> Floats:
        """Draws of the measured ratio at these levels in (0, 1)."""
        scatter, noise = self._off(UPPER, UPPER)
        off = self._off(levels, levels)[0 if scatter > noise else 1]
        drawn: Floats = ratio * np.exp(self.bias + off)
        return drawn


def errors_by_step(known: Sequence[Known]) -> dict[LadderStep, Floats]:
    """Errors of each left-out mix of different models, by model; (mixes,) each, NaN if unknown."""
    return {
        step: np.array([each.error for each in errors(step, Out.MIX, "", {"": known})])
        for step in LadderStep
    }


def of_steps_for(
    shared: Shared, known: Sequence[Known], errors_of: Mapping[LadderStep, Floats]
) -> dict[LadderStep, Floats]:
    """Return the errors of the prediction models that can predict this mix."""
    return {
        step: off for step, off in errors_of.items() if np.isfinite(predicted(step, shared, known))
    }


def best(errors_of: Mapping[LadderStep, Floats], noise: float, missed: int = 0) -> Accuracy | None:
    """Return the prediction model whose errors scatter least, the simplest of equal ones; None for
    the reason in `why_none`.

    `noise` is that of the mixes with these errors (`noise_of`), and `missed` the number of other
    mixes that carried nothing. Selecting a model by its errors makes these errors too small.
    Therefore the accuracy comes from errors that each mix has with the model, and the bias, that
    all other mixes select.
    """
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
    """Say why `best` returns None for these measured mixes, which `what` describes."""
    if mixes < FEWEST:
        return f"{mixes} {what} were measured, copies not counted; {FEWEST} are needed"
    if np.isnan(noise):
        return f"none of the {what} has a bounded interval"
    return f"{missed} of the {what} kept no SLA at any load, which no prediction model covers"


def _scatter(logs: Floats) -> Floats:
    """Return half of the interval of the next error, on a logarithmic scale, from the known errors
    along the last axis (at least two)."""
    n = np.isfinite(logs).sum(axis=-1)
    about = logs - np.nanmean(logs, axis=-1, keepdims=True)
    deviation = np.sqrt(np.nansum(about**2, axis=-1) / (n - 1))
    half: Floats = np.sqrt(1 + 1 / n) * deviation * special.stdtrit(n - 1, UPPER)
    return half


def _off_without_each(logs: Floats) -> Floats:
    """Return, for each mix, the error of the model that is best for the other mixes, minus that
    model's mean error for them; `logs` has a row per model."""
    mixes = np.arange(logs.shape[1])
    others = np.where(np.eye(len(mixes), dtype=bool), np.nan, logs[:, None, :])
    chosen = np.argmin(_scatter(others), axis=0)
    off = logs[chosen, mixes] - np.nanmean(others[chosen, mixes], axis=-1)
    return off[np.isfinite(off)]


def noise_of(known: Sequence[Known]) -> float:
    """Return the noise of a measured ratio of different models; NaN without one.

    Intervals with an open end are left out.
    """
    of_each = [
        each.noise for each in known if not each.shared.is_of_copies and np.isfinite(each.noise)
    ]
    return float(np.median(of_each)) if of_each else np.nan
