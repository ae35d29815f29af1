"""The files of the workflow, without results."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[1]
PARTS = ("Snakefile", "rules", "scripts", "config", "profiles", "envs", "report")


def copy_workflow(root: Path) -> Path:
    """Copy the workflow to a folder and return the folder."""
    for part in PARTS:
        if (ROOT / part).is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / part, root / part, ignore=ignore)
        else:
            shutil.copy2(ROOT / part, root / part)
    return root
