"""Compute the saving of shared servers relative to dedicated servers
(docs/explanation/sharing-ratio.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perseus.peak.stats import CONFIDENCE, TAIL, Floats, Interval
from perseus.results.repeats import Quantity


@dataclass(frozen=True)
class Saving:
    """Saving of a shared server on one load line, relative to dedicated servers of the same
    hardware and price.

    `fractional` is the saving 1 - 1 / sum(r_i / C_i) with its interval, where r_i is the rate of
    tenant i on the shared server, and C_i its dedicated peak. `probability` is the probability that
    the saving is above 0; NaN if the interval of the sharing ratio begins at 0 or ends at infinity.

    `simultaneous` is the interval for comparisons of several load lines. With a probability of
    95 %, the intervals `simultaneous` of all `compared` load lines of the scenario contain their
    true savings.
    """

    fractional: Interval
    probability: float
    simultaneous: Interval
    compared: int


def savings(ratios: Sequence[Quantity]) -> list[Saving]:
    """Return the saving for each sharing ratio; NaN if the sharing ratio is unknown.

    `ratios` has the sharing ratios of the shared load lines of one scenario. The largest of several
    estimated savings is usually too high by chance. To compare load lines, use the interval
    `simultaneous`, which is wider for this reason.
    """
    known = [ratio.draws for ratio in ratios if ratio.is_known]
    tail = simultaneous_tail(np.array(known)) if known else np.nan
    return [_saving(ratio, tail, len(known)) for ratio in ratios]


def simultaneous_tail(draws: Floats) -> float:
    """Return the tail probability t of simultaneous intervals: the interval of each load line goes
    from the quantile t to the quantile 1 - t of its draws.

    `draws` has shape (lines, draws): each joint draw has one value per load line. With this t, the
    intervals contain all values of a joint draw for the share CONFIDENCE of the joint draws
    (balanced simultaneous confidence sets: Beran, J. Am. Stat. Assoc. 83, 1988).
    """
    ranks = (draws.argsort(axis=1).argsort(axis=1) + 0.5) / draws.shape[1]
    tail = np.quantile(np.minimum(ranks, 1 - ranks).min(axis=0), 1 - CONFIDENCE)
    return min(float(tail), TAIL)


def _saving(ratio: Quantity, tail: float, compared: int) -> Saving:
    is_bounded = ratio.is_known and not ratio.open_below and not ratio.open_above
    return Saving(
        fractional=_saved(ratio.interval()),
        probability=float(np.mean(ratio.draws > 1)) if is_bounded else np.nan,
        simultaneous=_saved(ratio.interval(tail)),
        compared=compared,
    )


def _saved(ratio: Interval) -> Interval:
    with np.errstate(divide="ignore"):
        value, low, high = 1 - 1 / np.array([ratio.value, ratio.low, ratio.high])
    return Interval(float(value), float(low), float(high))
