"""Test whether 95 % intervals from few repeats contain the true value, in simulated studies."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.results import Goal, Row
from benchmarks.serving import Place, Say
from perseus.peak.between_repeats import limit_draws
from perseus.peak.stats import Floats

BENCHMARK = "repeats"
STUDIES, DRAWS, POSTERIOR = 2000, 400, 200
WITHIN = 0.02
"""Error of the limit that one repeat measures, as a standard deviation of the logarithm."""

NOMINAL = Goal(">=", 0.95, "ours")


def run(at: Place, say: Say) -> Iterator[Row]:
    for repeats in (2, 3, 5):
        for between in (0.0, WITHIN, 5**0.5 * WITHIN, 0.1, 0.2):
            case = f"{repeats} repeats that differ by {100 * between:.3g} %"
            say(case)
            for what, draw in (("peak", peak_draws), ("sharing ratio", ratio_draws)):
                ends = intervals(draw, repeats, between, WITHIN, STUDIES)
                width = float(np.median(np.diff(ends))) / 2
                yield Row(
                    BENCHMARK,
                    case,
                    f"share of 95 % intervals of {what}s that contain the truth (higher is better)",
                    covered(ends),
                    goal=NOMINAL,
                )
                yield Row(BENCHMARK, case, f"half the width of the interval of a {what}", width)


def peak_draws(rng: np.random.Generator, repeats: int, between: float, within: float) -> Floats:
    """Return draws of a peak whose true value is 1, shape (draws,).

    `between` is the standard deviation of the logarithm of the true values of repeats. `within` is
    the standard deviation of the error of one repeat, on the logarithmic scale.
    """
    found = np.exp(rng.normal(0, between, repeats) + rng.normal(0, within, repeats))
    posteriors = found[:, None] * np.exp(rng.normal(0, within, (repeats, POSTERIOR)))
    return np.asarray(limit_draws(list(posteriors), rng, DRAWS).mean(axis=1))


def ratio_draws(rng: np.random.Generator, repeats: int, between: float, within: float) -> Floats:
    """Return draws of a sharing ratio whose true value is 1: two tenants, each at half its
    dedicated peak."""
    shared, *alone = (peak_draws(rng, repeats, between, within) for _ in range(3))
    return np.asarray(sum(shared / 2 / each for each in alone))


def intervals(
    draw: Callable[[np.random.Generator, int, float, float], Floats],
    repeats: int,
    between: float,
    within: float,
    studies: int,
) -> Floats:
    """Return the ends of the 95 % interval of each study, shape (studies, 2)."""
    drawn = (draw(np.random.default_rng(s), repeats, between, within) for s in range(studies))
    return np.array([np.quantile(draws, [0.025, 0.975]) for draws in drawn])


def covered(ends: Floats) -> float:
    """Return the share of intervals that contain the true value, which is 1."""
    return float(np.mean((ends[:, 0] <= 1) & (ends[:, 1] >= 1)))
