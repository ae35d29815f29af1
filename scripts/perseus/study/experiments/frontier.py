"""Experiment `frontier`: peaks along mixes that are chosen while they are measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from perseus.study.base import Whole
from perseus.study.experiments.base import ExperimentSettings
from perseus.study.experiments.peak import Run
from perseus.study.problems import Problems


class Settings(ExperimentSettings):
    """Search the peaks of so many mixes."""

    kind: Literal["frontier"] = Field(
        description="`frontier` searches the peaks of mixes that it chooses itself. Of two tenants"
        " each is placed where the frontier bends or is uncertain by then; of more, all together"
        " come first, then pairs, then all with twice as much of one."
    )
    points: Annotated[Whole, Field(ge=1, le=100)] = Field(
        default=5, description="Mixes, each a cell of its own (times the repeats)."
    )

    def runs(self) -> Iterator[Run]:
        for point in range(1, self.points + 1):
            yield Run.frontier(point)

    def problems(self, tenants: Sequence[str]) -> Problems:
        if len(tenants) < 2:
            yield (), "needs at least two tenants"
        most = most_points(len(tenants))
        if len(tenants) > 2 and self.points > most:
            yield ("points",), f"must be <= {most}, the mixes that it has of {len(tenants)} tenants"


def most_points(tenants: int) -> int:
    """The mixes of three tenants and more (`perseus.peak.frontier`): all, pairs, more of each."""
    return 1 + tenants * (tenants - 1) // 2 + tenants
