"""Read how much memory an inference of each model accesses, from the record of the model's
export."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path


def working_sets_bytes(checks: Iterable[Path]) -> dict[str, float]:
    """Return the size of the working set of each model in bytes; a model whose record has no cost
    is left out.

    `checks` has the paths of the export records, each in a folder with the name of its model.
    """
    costs = {path.parent.name: json.loads(path.read_bytes()).get("cost") for path in checks}
    return {model: cost["working_set_bytes"] for model, cost in costs.items() if cost}
