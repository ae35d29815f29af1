"""Read from export records (check.json) how much memory one inference of each model accesses."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path


def working_sets_bytes(checks: Iterable[Path]) -> dict[str, float]:
    """Return the working set of each model in bytes: the memory that one inference accesses.

    `checks` has the paths of the export records. The folder of a record has the name of the model.
    The result has no entry for a model whose export record has no cost.
    """
    costs = {path.parent.name: json.loads(path.read_bytes()).get("cost") for path in checks}
    return {model: cost["working_set_bytes"] for model, cost in costs.items() if cost}
