"""How far predictions are off: of measured mixes, each predicted as if it had not been."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy import stats

from perseus.peak.predicted.ladder import Known, LadderStep, Shared, predicted
from perseus.peak.stats import Floats, Interval

FEWEST = 4
"""Measured mixes from which on the error of a prediction is stated: three degrees of freedom."""

CONFIDENCE = 0.9
"""Of the interval of a prediction: one mix in ten may lie outside."""


class Out(StrEnum):
    """What is left out of what is known when a mix is predicted."""

    MIX = "mix"
    MODEL = "model"
    SERVER = "server"


@dataclass(frozen=True)
class Error:
    """A mix on a server, and its predicted ratio / measured ratio - 1."""

    server: str
    shared: Shared
    error: float


def errors(step: LadderStep, out: Out, known: Mapping[str, Sequence[Known]]) -> Iterator[Error]:
    """Of every mix of different models; `known` is by server.

    One that a step cannot predict from what is left has the error NaN. Without a model there is one
    error for each model of the mix.
    """
    for server, mixes in known.items():
        for each in mixes:
            if not each.shared.is_of_copies:
                for left in _left(out, server, each, known):
                    error = predicted(step, each.shared, left) / each.ratio - 1
                    yield Error(server, each.shared, error)


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
    is put right by it.
    """

    step: LadderStep
    n: int
    bias: float
    deviation: float

    @property
    def spread(self) -> float:
        """The standard deviation of the next one, whose bias is not better known than that."""
        return float(self.deviation * np.sqrt(1 + 1 / self.n))

    @property
    def half_width(self) -> float:
        """Of the interval of a prediction, as a share of it: the upper one, which is wider."""
        return float(np.expm1(stats.t.ppf((1 + CONFIDENCE) / 2, self.n - 1) * self.spread))

    def interval(self, ratio: float) -> Interval:
        """Of the measured ratio, where the step predicts `ratio`."""
        middle = ratio * np.exp(self.bias)
        return Interval(middle, middle / (1 + self.half_width), middle * (1 + self.half_width))

    def draws(self, ratio: float, levels: Floats) -> Floats:
        """At the levels in (0, 1) of Student's t, as `levels` shaped."""
        drawn: Floats = ratio * np.exp(self.bias + self.spread * stats.t.ppf(levels, self.n - 1))
        return drawn


def errors_by_step(known: Sequence[Known]) -> dict[LadderStep, Floats]:
    """Those of each mix of different models, left out; (mixes,) each, NaN where there is none."""
    return {
        step: np.array([each.error for each in errors(step, Out.MIX, {"": known})])
        for step in LadderStep
    }


def best(errors_of: Mapping[LadderStep, Floats]) -> Accuracy | None:
    """The step whose predictions scatter least, of equals the lowest; None where too few tell."""
    found = [each for step, off in errors_of.items() if (each := _accuracy(step, off)) is not None]
    return min(found, key=lambda each: each.half_width, default=None)


def _accuracy(step: LadderStep, off: Floats) -> Accuracy | None:
    logs = -np.log1p(off[np.isfinite(off)])
    if len(logs) < FEWEST:
        return None
    return Accuracy(step, len(logs), float(logs.mean()), float(logs.std(ddof=1)))
