"""Decide whether each new value is better than its base value, worse, or not different."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from perseus.peak.stats import CONFIDENCE, UNKNOWN, Floats, Interval
from perseus.results.compare.pairs import HIGHER_IS_BETTER, ComparedPair

BETTER, WORSE, SAME, NOT_COMPARABLE = "better", "worse", "no difference", "not comparable"
VERDICTS: Final = (WORSE, BETTER, SAME, NOT_COMPARABLE)


@dataclass(frozen=True)
class Judged:
    """A compared pair with its verdict and two 95 % intervals of its ratio.

    `interval` contains the true ratio of this pair with a probability of 95 %. With a probability
    of 95 %, every interval `simultaneous` of a comparison contains its true ratio. Both intervals
    are NaN if the pair is not comparable.
    """

    pair: ComparedPair
    interval: Interval
    simultaneous: Interval
    verdict: str


def judge(pairs: Sequence[ComparedPair]) -> list[Judged]:
    """Return all compared pairs of values, each with its verdict.

    The verdict is `no difference` if the simultaneous interval of the ratio contains 1, or if the
    relative difference of the two values is at most the noise floor.
    """
    compared = [pair for pair in pairs if pair.ratio.is_known and not pair.why_not]
    reach = simultaneous_half_width(np.log(pair.ratio.draws) for pair in compared)
    return [_judged(pair, reach) for pair in pairs]


def simultaneous_half_width(logs: Iterable[Floats]) -> float:
    """Return the half-width of simultaneous intervals, in standard deviations; NaN without pairs.

    With this half-width, all intervals contain their true values with a probability of 95 %.

    `logs` has one row for each compared pair: draws of the logarithm of its ratio, shape (draws,).
    The draws with the same index in all rows form one joint draw. In each joint draw, the function
    finds the largest standardised deviation of all rows. The result is the 95 % quantile of these
    largest deviations: the single-step max-t method (Westfall and Young, Resampling-Based Multiple
    Testing, 1993, section 2.3; Hothorn, Bretz and Westfall, Biometrical Journal 50, 2008, section
    3). Two strongly correlated rows, such as a peak and its cost, have hardly a larger half-width
    than one row.
    """
    largest: Floats | None = None
    for row in logs:  # the loop saves memory: 4,000 rows at once would take 0.3 GB
        away = np.abs(_standardised(row))
        largest = away if largest is None else np.maximum(largest, away)
    return np.nan if largest is None else float(np.quantile(largest, CONFIDENCE))


def _standardised(logs: Floats) -> Floats:
    spread = logs.std()
    return (logs - logs.mean()) / spread if spread > 0 else np.zeros_like(logs)


def _judged(pair: ComparedPair, reach: float) -> Judged:
    ratio = pair.ratio
    if pair.why_not or not ratio.is_known:
        return Judged(pair, UNKNOWN, UNKNOWN, NOT_COMPARABLE)
    logs = np.log(ratio.draws)
    ends = np.exp(logs.mean() + reach * logs.std() * np.array([-1, 1]))
    low, high = 0.0 if ratio.open_below else ends[0], np.inf if ratio.open_above else ends[1]
    simultaneous = Interval(ratio.value, float(low), float(high))
    return Judged(pair, ratio.interval(), simultaneous, _verdict(pair, simultaneous))


def _verdict(pair: ComparedPair, found: Interval) -> str:
    if found.low <= 1 <= found.high:
        return SAME
    if abs(np.log(found.value)) <= np.log1p(
        pair.floor
    ):  # a comparison with NaN (an unknown noise floor) is False
        return SAME
    return BETTER if (found.low > 1) == HIGHER_IS_BETTER[pair.metric] else WORSE
