"""Define the data of a conclusion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from perseus.report.links import Link

Tables = Mapping[str, pd.DataFrame]
"""Tables of a study, by name."""


@dataclass(frozen=True)
class Conclusion:
    """A conclusion of the report, with its sentences and evidence.

    `kind` is "yes", "perhaps", "no", "unclear" or "unknown". `behind` has links to the numbers that
    support the conclusion. A conclusion that summarises other conclusions has these conclusions as
    its `parts`. Among parts of the same kind, the part with the highest `rank` comes first.
    """

    kind: str
    headline: str
    sentences: tuple[str, ...]
    behind: tuple[Link, ...] = ()
    rank: float = 0.0
    parts: tuple[Conclusion, ...] = ()
