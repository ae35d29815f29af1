"""Define the task: predict sharing ratios."""

from __future__ import annotations

from perseus.study.base import Part


class PredictionsTask(Part):
    """Settings of the prediction of sharing ratios. `seed` is the seed of the resampling of
    results."""

    study: str
    seed: int
