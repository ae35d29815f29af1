"""Names of files."""

from __future__ import annotations

from perseus.study.problems import Place, Problems


def brace_problems(at: Place, path: str) -> Problems:
    """A path that Snakemake would misread."""
    if "{" in path or "}" in path:
        yield at, f"{path!r} has a brace, which Snakemake takes for a wildcard (rename it)"
