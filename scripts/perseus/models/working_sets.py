"""Read the memory that an inference of each model accesses, from the record of its export."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path


def working_sets_bytes(checks: Iterable[Path]) -> dict[str, float]:
    """Return the size of the working set of each model in bytes; a model without a counted graph is
    left out.

    `checks` has the paths of the records of exports, each in the folder of its model.
    """
    costs = {path.parent.name: json.loads(path.read_bytes()).get("cost") for path in checks}
    return {model: cost["working_set_bytes"] for model, cost in costs.items() if cost}
