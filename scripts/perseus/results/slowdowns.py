"""Compute slowdowns with their uncertainty (docs/explanation/slowdown.md).

A slowdown is the latency of a tenant while another tenant has load, divided by the latency of the
tenant alone at the same rate. An A/A comparison compares two windows in which only this tenant has
load, to show the noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from pydantic import BaseModel

from perseus.peak.between_repeats import shared_deviation_draws
from perseus.peak.outcome import Outcome
from perseus.peak.stats import NORMAL_ENDS, Floats, Interval
from perseus.peak.verdict import ANSWERED, Verdict
from perseus.results.records import Number
from perseus.results.repeats import DRAWS, Quantity

Pair = tuple[str, str]
"""The name of the tenant whose slowdown Perseus measures, and the name of the other tenant with
load. In an A/A comparison, the two names are equal."""


class Ends(BaseModel):
    """A value with the two ends of its interval."""

    value: Number
    low: Number
    high: Number

    @property
    def interval(self) -> Interval:
        return Interval(self.value, self.low, self.high)


class Seen(BaseModel):
    """Results of one tenant in one window. `verdict` says whether the tenant kept its SLA."""

    requests: int
    completed_ratio: float
    verdict: Verdict
    mean_ms: Ends
    p95_ms: Ends


class Step(BaseModel):
    """One window of the experiment: the tenants with load, and the result of each tenant."""

    round: int
    tenants: tuple[str, ...]
    outcome: Outcome
    reason: str
    seen: dict[str, Seen]

    @property
    def description(self) -> str:
        return " beside ".join(self.tenants) + (" alone" if len(self.tenants) == 1 else "")


@dataclass(frozen=True)
class SlowdownComparison:
    """Comparison of the latencies of a tenant in two consecutive windows.

    In the window `alone_step`, only this tenant has load. In the window `shared_step`, another
    tenant also has load, except in an A/A comparison.
    """

    pair: Pair
    alone_step: Step
    shared_step: Step

    @property
    def is_aa(self) -> bool:
        """True if only this tenant has load in both windows (A/A comparison)."""
        return self.pair[0] == self.pair[1]

    @property
    def alone(self) -> Seen:
        return self.alone_step.seen[self.pair[0]]

    @property
    def shared(self) -> Seen:
        return self.shared_step.seen[self.pair[0]]

    @property
    def of_means(self) -> Interval:
        """Ratio of the mean latencies, shared / alone."""
        return ratio(self.shared.mean_ms.interval, self.alone.mean_ms.interval)

    @property
    def of_p95s(self) -> Interval:
        """Ratio of the p95 latencies, shared / alone.

        If a window has too few requests, the upper end of the interval of its p95 is infinite. The
        function `closed` replaces this end by a finite end.
        """
        return ratio(closed(self.shared.p95_ms.interval), closed(self.alone.p95_ms.interval))

    @property
    def ending(self) -> tuple[Outcome, str]:
        """Outcome of the comparison, and the reason for an outcome other than ok."""
        tenant, steps = self.pair[0], (self.alone_step, self.shared_step)
        for step in steps:
            if step.outcome is not Outcome.OK:
                return step.outcome, f"{step.description}: {step.reason}"
            if not step.seen[tenant].requests:
                return Outcome.UNCERTIFIED, f"{step.description}: no requests of {tenant}"
        short = [step for step in steps if step.seen[tenant].completed_ratio < ANSWERED]
        if not short:
            return Outcome.OK, ""
        # Only a window with both tenants shows that the server does not keep up with the pair.
        telling = steps if self.is_aa else (self.shared_step,)
        is_too_much = all(step in short for step in telling)
        ended = "; ".join(
            f"{step.description}: the server answered {step.seen[tenant].completed_ratio:.1%} of"
            f" {tenant}'s requests"
            for step in short
        )
        return (Outcome.INFEASIBLE if is_too_much else Outcome.UNCERTIFIED), ended


def comparisons(steps: Sequence[Step]) -> Iterator[SlowdownComparison]:
    """Yield a comparison for each tenant that has load in two consecutive windows. `steps` has the
    windows in their order."""
    for first, second in pairwise(steps):
        for tenant in first.tenants:
            if tenant in second.tenants:
                alone, shared = (first, second) if len(first.tenants) == 1 else (second, first)
                beside = next((name for name in shared.tenants if name != tenant), tenant)
                yield SlowdownComparison((tenant, beside), alone, shared)


def ratio(shared: Interval, alone: Interval) -> Interval:
    """Return the ratio shared / alone of two latencies, with its interval.

    The two latencies come from different windows and are independent, so the squares of their
    logarithmic errors add up.
    """
    ends = np.array([[each.low, each.value, each.high] for each in (shared, alone)])
    with np.errstate(divide="ignore", invalid="ignore"):
        (below, above), (alone_below, alone_above) = np.diff(np.log(ends), axis=1)
        value = ends[0, 1] / ends[1, 1]
        low = value / np.exp(np.hypot(below, alone_above))
        high = value * np.exp(np.hypot(above, alone_below))
    return Interval(float(value), float(low), float(high))


def closed(found: Interval) -> Interval:
    """Replace an infinite upper end of an interval by a finite end.

    On a logarithmic scale, the new end is as far from the value as the lower end. The function does
    not change an interval with a finite upper end, or an interval that begins at 0.
    """
    if np.isfinite(found.high) or not found.low > 0:
        return found
    return Interval(found.value, found.low, found.value**2 / found.low)


def of_rounds(
    ratios: Mapping[Pair, Sequence[Interval]], rng: np.random.Generator
) -> dict[Pair, Quantity]:
    """For each pair of tenants, return the geometric mean of its slowdowns in all rounds.

    For each pair, `ratios` has the slowdowns of at least one round, with their intervals. The
    slowdown of a pair varies between rounds by more than these intervals explain. The function
    estimates this additional variation from all pairs together. If the interval of one round begins
    at 0 or ends at infinity, the interval of the mean goes from 0 to infinity.
    """
    found = {pair: _Rounds.of(rounds) for pair, rounds in ratios.items()}
    bounded = [each.normal for each in found.values() if each.is_bounded]
    deviations = shared_deviation_draws(bounded, rng, DRAWS)
    return {pair: each.combined(deviations, rng) for pair, each in found.items()}


@dataclass(frozen=True)
class _Rounds:
    """Slowdown of a pair of tenants in R rounds.

    `logs` has the logarithm of the slowdown in each round, shape (R,). `errors` has the standard
    errors of each logarithm towards lower and towards higher values, shape (R, 2).
    """

    logs: Floats
    errors: Floats

    @classmethod
    def of(cls, rounds: Sequence[Interval]) -> Self:
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log([[each.low, each.value, each.high] for each in rounds])
            errors = np.diff(logs, axis=1) / NORMAL_ENDS
        return cls(logs[:, 1], errors)

    @property
    def is_bounded(self) -> bool:
        return bool(np.isfinite(self.errors).all())

    @property
    def normal(self) -> tuple[Floats, Floats]:
        """Logarithm of the slowdown in each round, and the variance of this logarithm by the normal
        approximation."""
        return self.logs, (self.errors**2).mean(axis=1)

    def combined(self, deviations: Floats, rng: np.random.Generator) -> Quantity:
        """Return the geometric mean over the rounds, with its draws.

        `deviations` has draws of a standard deviation: how much the logarithm of a slowdown varies
        between rounds, apart from the errors within the windows.
        """
        value, rounds = float(np.exp(self.logs.mean())), len(self.logs)
        if not self.is_bounded:
            return Quantity(value, np.array([value]), open_below=True, open_above=True)
        normal = rng.standard_normal((DRAWS, rounds))
        within = np.where(normal < 0, self.errors[:, 0], self.errors[:, 1]) * normal
        between = deviations * rng.standard_normal(DRAWS) / np.sqrt(rounds)
        draws = np.exp((self.logs + within).mean(axis=1) + between)
        return Quantity(value, draws)
