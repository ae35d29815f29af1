"""Define the task: compare the results of two studies."""

from __future__ import annotations

from perseus.study.base import Part


class CompareTask(Part):
    """The results of two studies (each a folder or an archive), digests of their content, and the
    output folder."""

    base: str
    new: str
    base_digest: str
    new_digest: str
    out: str
