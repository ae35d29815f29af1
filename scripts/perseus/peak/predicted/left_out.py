"""How far predictions are off: of measured mixes, each predicted as if it had not been."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import special

from perseus.peak.predicted.ladder import Known, LadderStep, Shared, predicted
from perseus.peak.stats import Floats, Interval

FEWEST = 4
"""Measured mixes from which on the error of a prediction is stated: three degrees of freedom."""

CONFIDENCE = 0.9
"""Of the interval of a prediction: one mix in ten may lie outside."""

UPPER = (1 + CONFIDENCE) / 2
"""The level of its upper end."""


class Out(StrEnum):
    """What is left out of what is known when a mix is predicted."""

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
    """Of every mix of different models on a server; `known` is by server.

    One that a step cannot predict from what is left has the error NaN. Without a model there is one
    error for each model of the mix.
    """
    for each in known[server]:
        if not each.shared.is_of_copies:
            for left in _left(out, server, each, known):
                error = predicted(step, each.shared, left) / each.ratio - 1
                yield Error(each.shared, error)


def _left(
    out: Out, server: str, of: Known, known: Mapping[str, Sequence[Known]]
) -> Iterator[list[Known]]:
    """What is known without the mix, without each of its models, or without the server."""
    if out is Out.MIX:
        yield [each for each in known[server] if each is not of]
    elif out is Out.MODEL:
        for model in sorted(of.shared.models):
            yield [each for each in known[server] if model not in each.shared.models]
    else:
        yield [each for other, mixes in known.items() if other != server for each in mixes]


@dataclass(frozen=True)
class Accuracy:
    """How far a step is off on a server, from n measured mixes, each predicted without itself.

    `bias` and `deviation` are of log(measured / predicted): a step that is always off by the same
    is put right by it. `noise` is how far measured ratios are off themselves: a few that were
    measured in the same quarter of an hour may scatter by less. `missed` more mixes carried
    nothing, which no step says: that many of all predictions are off by more than any interval.
    """

    step: LadderStep
    n: int
    bias: float
    deviation: float
    noise: float = 0.0
    missed: int = 0

    @property
    def is_as_good_as_measuring(self) -> bool:
        """Whether nine of ten predictions are no further off from a measurement than a second
        measurement would be from it."""
        scatter, noise = self._off(self._upper, UPPER)
        return bool(scatter <= np.sqrt(2) * noise)

    @property
    def half_width(self) -> float:
        """Of the interval of a prediction, as a share of it: the upper one, which is wider."""
        return float(np.expm1(np.max(self._off(self._upper, UPPER))))

    @property
    def _upper(self) -> float:
        """The level at the upper end of what the scatter says, so that of all mixes, those that
        carried nothing among them, CONFIDENCE lie within."""
        return (1 + CONFIDENCE * (1 + self.missed / self.n)) / 2

    def _off(self, scattered: float | Floats, noisy: float | Floats) -> tuple[Floats, Floats]:
        """Quantiles of log(measured / predicted) about the bias, which is not better known than
        what it is of: by the scatter of n errors, and by the noise of measured ratios."""
        wider = np.sqrt(1 + 1 / self.n)
        scatter = wider * self.deviation * special.stdtrit(self.n - 1, scattered)
        return scatter, wider * self.noise * special.ndtri(noisy)

    def interval(self, ratio: float) -> Interval:
        """Of the measured ratio, where the step predicts `ratio`."""
        middle = ratio * np.exp(self.bias)
        return Interval(middle, middle / (1 + self.half_width), middle * (1 + self.half_width))

    def draws(self, ratio: float, levels: Floats) -> Floats:
        """Of the measured ratio, at these levels in (0, 1), as `levels` shaped; of a mix that
        carries anything."""
        scatter, noise = self._off(UPPER, UPPER)
        off = self._off(levels, levels)[0 if scatter > noise else 1]
        drawn: Floats = ratio * np.exp(self.bias + off)
        return drawn


def errors_by_step(known: Sequence[Known]) -> dict[LadderStep, Floats]:
    """Those of each mix of different models, left out; (mixes,) each, NaN where there is none."""
    return {
        step: np.array([each.error for each in errors(step, Out.MIX, "", {"": known})])
        for step in LadderStep
    }


def of_steps_for(
    shared: Shared, known: Sequence[Known], errors_of: Mapping[LadderStep, Floats]
) -> dict[LadderStep, Floats]:
    """Those of the steps that can predict a mix from what is known: perhaps fewer than can predict
    the known ones."""
    return {
        step: off for step, off in errors_of.items() if np.isfinite(predicted(step, shared, known))
    }


def best(errors_of: Mapping[LadderStep, Floats], noise: float, missed: int = 0) -> Accuracy | None:
    """The step whose predictions scatter least, of equals the lowest; None as `why_none` says.

    `noise` is that of the mixes whose errors these are (`noise_of`), and `missed` how many others
    carried nothing. A step that is chosen for its errors has smaller ones among them than it will
    have. So each mix tells how far that step is off which the others would have chosen, and put
    right by theirs.
    """
    with np.errstate(divide="ignore"):
        logs = -np.log1p(np.array(list(errors_of.values())))  # (steps, mixes)
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
    """Why `best` has none for so many measured mixes of different models, which are `what`."""
    if mixes < FEWEST:
        return f"{mixes} {what} were measured, copies not counted; {FEWEST} are needed"
    if np.isnan(noise):
        return f"none of the {what} has an interval that ends"
    return f"{missed} of the {what} carried nothing within their SLAs, which no step foretells"


def _scatter(logs: Floats) -> Floats:
    """Half of the interval of the next error, on a logarithmic scale, by those along the last axis,
    of which two at least are known (the others are NaN)."""
    n = np.isfinite(logs).sum(axis=-1)
    about = logs - np.nanmean(logs, axis=-1, keepdims=True)
    deviation = np.sqrt(np.nansum(about**2, axis=-1) / (n - 1))
    half: Floats = np.sqrt(1 + 1 / n) * deviation * special.stdtrit(n - 1, UPPER)
    return half


def _off_without_each(logs: Floats) -> Floats:
    """Of each mix that it can predict, how far that step is off which the other mixes choose, less
    its mean error of these; `logs` has a row for each step, with FEWEST errors at least."""
    mixes = np.arange(logs.shape[1])
    others = np.where(np.eye(len(mixes), dtype=bool), np.nan, logs[:, None, :])
    chosen = np.argmin(_scatter(others), axis=0)
    off = logs[chosen, mixes] - np.nanmean(others[chosen, mixes], axis=-1)
    return off[np.isfinite(off)]


def noise_of(known: Sequence[Known]) -> float:
    """That of a measured ratio of different models; NaN without one. Those with an open end tell
    nothing of it."""
    of_each = [
        each.noise for each in known if not each.shared.is_of_copies and np.isfinite(each.noise)
    ]
    return float(np.median(of_each)) if of_each else np.nan
