"""Define the task: predict sharing ratios."""

from __future__ import annotations

from perseus.study.base import Part


class PredictionsTask(Part):
    """Settings of the predictions of sharing ratios. `seed` is the seed of the resampling."""

    study: str
    seed: int
