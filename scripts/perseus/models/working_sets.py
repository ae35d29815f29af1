"""The memory that an inference of each model accesses, from the record of its export."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path


def working_sets_bytes(checks: Iterable[Path]) -> dict[str, float]:
    """Return bytes by model, if its graph was counted.

    `checks` are the records of exports, each in the folder of its model.
    """
    costs = {path.parent.name: json.loads(path.read_bytes()).get("cost") for path in checks}
    return {model: cost["working_set_bytes"] for model, cost in costs.items() if cost}
