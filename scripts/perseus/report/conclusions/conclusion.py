"""The data of a conclusion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from perseus.report.links import Link

Tables = Mapping[str, pd.DataFrame]
"""The tables of a study, by name."""


@dataclass(frozen=True)
class Conclusion:
    """A conclusion.

    `kind` is "yes", "perhaps", "no", "unclear" or "unknown"; `behind` links to the numbers. If many
    conclusions are merged, those with the highest `rank` come first within their kind, and all are
    `parts` of the merged conclusion.
    """

    kind: str
    headline: str
    sentences: tuple[str, ...]
    behind: tuple[Link, ...] = ()
    rank: float = 0.0
    parts: tuple[Conclusion, ...] = ()
