"""Define the task of the job that compares the results of two studies."""

from __future__ import annotations

from perseus.study.base import Part


class CompareTask(Part):
    """The results of two studies, and the output folder.

    `base` and `new` are the paths of the results: folders or archives. If the digest of a result
    changes, Snakemake repeats the job.
    """

    base: str
    new: str
    base_digest: str
    new_digest: str
    out: str
