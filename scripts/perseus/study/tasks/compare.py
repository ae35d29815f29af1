"""The task of comparing two results."""

from __future__ import annotations

from perseus.study.base import Part


class CompareTask(Part):
    """Folders or archives of results, with digests of what is read of them, and the folder for what
    comes out."""

    base: str
    new: str
    base_digest: str
    new_digest: str
    out: str
