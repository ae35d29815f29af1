"""Define the task of the job that compares the results of two studies."""

from __future__ import annotations

from perseus.study.base import Part


class CompareTask(Part):
    """The paths of the results of two studies (`base` and `new`, each a folder or an archive), the
    digests of their content, and the output folder. If a digest changes, Snakemake repeats the
    job."""

    base: str
    new: str
    base_digest: str
    new_digest: str
    out: str
