"""What an answer is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from perseus.report.links import Link

Tables = Mapping[str, pd.DataFrame]
"""The tables of a study, by name."""


@dataclass(frozen=True)
class Answer:
    """`kind` is "yes", "perhaps", "no", "unclear" or "unknown"; `behind` leads to the numbers.

    Where many answers to one question are summed up, those of the highest `rank` come first of
    their kind, and all are `parts` of the one that stands for them.
    """

    kind: str
    headline: str
    sentences: tuple[str, ...]
    behind: tuple[Link, ...] = ()
    rank: float = 0.0
    parts: tuple[Answer, ...] = ()
