"""Task: predict sharing ratios."""

from __future__ import annotations

from perseus.study.base import Part


class PredictionsTask(Part):
    """`seed` is that of the resampling."""

    study: str
    seed: int
