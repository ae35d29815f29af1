"""The files of the workflow, without what its runs make."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[1]
PARTS = ("Snakefile", "rules", "scripts", "config", "profiles", "envs", "report")


def copy_workflow(root: Path) -> Path:
    """Copies them to a folder; returns that."""
    for part in PARTS:
        if (ROOT / part).is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / part, root / part, ignore=ignore)
        else:
            shutil.copy2(ROOT / part, root / part)
    return root
