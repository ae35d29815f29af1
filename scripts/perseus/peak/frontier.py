"""Choose which mix of a frontier to measure next (docs/explanation/frontier.md).

A mix has one weight per tenant, and states in which ratio the rates of the tenants rise. Each
measured mix gives one point of the frontier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np

from perseus.peak.stats import Interval

UNKNOWN = 1.0
"""Half-width that `next_weights` assumes for the interval of a sharing ratio if the interval is
infinite or unknown."""
ALONE = Interval(1.0, 1.0, 1.0)
"""Sharing ratio at both ends of a frontier of two tenants: one tenant has the server alone."""


@dataclass(frozen=True)
class MeasuredMix:
    """The weights of a measured mix, and its sharing ratio (NaN if the mix has no estimate).

    The sharing ratio equals the load factor at the limit of the mix (docs/explanation/load.md).
    """

    weights: tuple[int, ...]
    ratio: Interval

    @property
    def share(self) -> Fraction:
        """Return the weight of the first tenant divided by the sum of all weights."""
        return Fraction(self.weights[0], sum(self.weights))

    @property
    def doubt(self) -> float:
        """Return half the width of the interval of the sharing ratio; UNKNOWN if the width is
        infinite or unknown."""
        half = (self.ratio.high - self.ratio.low) / 2
        return float(half) if np.isfinite(half) else UNKNOWN


def next_weights(tenants: int, measured: Sequence[MeasuredMix]) -> tuple[int, ...]:
    """Return the weights of the next mix to measure. `measured` contains the mixes so far.

    For three or more tenants, the next mix is the next entry of the list `rays`. After the last
    entry, the function raises IndexError.

    For two tenants, the next mix lies in the middle of the gap between two neighbouring mixes. The
    width of a gap is the difference between the shares (`MeasuredMix.share`) of the two mixes. The
    function chooses the gap with the largest product of width and uncertainty. The uncertainty of a
    gap is the sum of two terms: the larger bend of the frontier at an end of the gap, and the mean
    of `doubt` at both ends. The bend at a mix is the difference between its sharing ratio and the
    straight line through the sharing ratios of its two neighbours.
    """
    if tenants > 2:
        return rays(tenants)[len(measured)]
    ends = [MeasuredMix((0, 1), ALONE), MeasuredMix((1, 0), ALONE)]
    mixes = sorted([*ends, *measured], key=lambda mix: mix.share)
    bends = _bends(mixes)
    worth = [
        float(b.share - a.share) * (max(bends[i : i + 2]) + (a.doubt + b.doubt) / 2)
        for i, (a, b) in enumerate(pairwise(mixes))
    ]
    widest = int(np.argmax(worth))
    middle = (mixes[widest].share + mixes[widest + 1].share) / 2
    return middle.numerator, middle.denominator - middle.numerator


def rays(tenants: int) -> list[tuple[int, ...]]:
    """Return the weights of all mixes to measure for three or more tenants, in the order of their
    measurement.

    The first mix contains all tenants with equal weights. Then each pair of tenants has a mix with
    equal weights. Finally, each tenant has a mix of all tenants, in which its weight is 2 and each
    other weight is 1.
    """
    pairs = [tuple(int(i in pair) for i in range(tenants)) for pair in round_robin(tenants)]
    more = [tuple(1 + (i == most) for i in range(tenants)) for most in range(tenants)]
    return [(1,) * tenants, *pairs, *more]


def round_robin(tenants: int) -> list[tuple[int, int]]:
    """Return all pairs of tenants, in an order in which the first pairs have no common tenant.

    The list consists of the rounds of a round-robin tournament (circle method). In a round, no
    tenant occurs twice.
    """
    rounds = tenants - 1 + tenants % 2

    # In a round, all pairs have the same sum of tenant numbers, modulo the number of rounds. If the
    # number of tenants is even, the last tenant is the partner of the tenant that remains.
    def number(pair: tuple[int, int]) -> int:
        first, second = pair
        return (2 * first if second == rounds else first + second) % rounds

    return sorted(combinations(range(tenants), 2), key=number)


def _bends(mixes: Sequence[MeasuredMix]) -> list[float]:
    """Return the bend of the frontier at each mix (`next_weights` defines the bend).

    The neighbours of a mix are the nearest mixes with a known sharing ratio. The bend is 0 at both
    ends of the frontier, and at a mix whose sharing ratio is unknown.
    """
    known = [i for i, mix in enumerate(mixes) if np.isfinite(mix.ratio.value)]
    found = [0.0] * len(mixes)
    for before, i, after in zip(known, known[1:], known[2:], strict=False):
        shares = [float(mixes[j].share) for j in (before, i, after)]
        ratios = [mixes[j].ratio.value for j in (before, i, after)]
        between = np.interp(shares[1], [shares[0], shares[2]], [ratios[0], ratios[2]])
        found[i] = abs(ratios[1] - float(between))
    return found
