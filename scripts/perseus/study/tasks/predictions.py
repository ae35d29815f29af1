"""Define the task of the job that predicts sharing ratios from the results of a study."""

from __future__ import annotations

from perseus.study.base import Part


class PredictionsTask(Part):
    """Settings of the prediction of sharing ratios. `seed` is the random seed with which the job
    resamples the measured results."""

    study: str
    seed: int
