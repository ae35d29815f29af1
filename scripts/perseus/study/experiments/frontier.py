"""Experiment `frontier`: peaks of mixes that are chosen during the measurement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated, Literal

from pydantic import Field

from perseus.study.base import Flag, Real, Whole
from perseus.study.experiments import peak
from perseus.study.experiments.base import ExperimentSettings
from perseus.study.problems import Problems


class Run(peak.Run):
    """The search of a mix whose weights follow from the earlier mixes.

    `point` is its number among them, from 1. With `predict`, it is not searched if it is predicted
    within `predict_within_percent`, or, if that is None, as exactly as a measurement.
    """

    kind: Literal["frontier"] = "frontier"
    line: Literal["mix"] = "mix"
    point: int
    predict: bool = False
    predict_within_percent: float | None = None

    @classmethod
    def of_point(
        cls, point: int, *, predict: bool = False, within_percent: float | None = None
    ) -> Run:
        return cls(
            name=_name(point), point=point, predict=predict, predict_within_percent=within_percent
        )

    @property
    def needs_runs(self) -> tuple[str, ...]:
        return tuple(_name(before) for before in range(1, self.point))

    @property
    def needs_copies(self) -> bool:
        """True if it needs copies: predictions need them, a mix that is always measured does
        not."""
        return self.predict


def _name(point: int) -> str:
    return f"frontier-{point}"


class Settings(ExperimentSettings):
    """Search the peaks of several mixes."""

    kind: Literal["frontier"] = Field(
        description="`frontier` searches the peaks of mixes that it chooses itself. With two"
        " tenants, each mix is placed where the frontier bends or is most uncertain. With more"
        " tenants, the order is: the mix of the study's `demand`, in the ratio of its typical"
        " rates, if the demand names all tenants; all tenants equally; pairs; all tenants with"
        " twice as much of one."
    )
    points: Annotated[Whole, Field(ge=1, le=100)] = Field(
        default=5, description="Number of mixes, each a cell of its own (times the repeats)."
    )
    predict: Flag = Field(
        default=False,
        description="Do not measure a mix whose sharing ratio is predicted well enough from the"
        " dedicated cells, from earlier mixes, and from scenarios in which a model shares the"
        " server with copies of itself. The verdict of such a mix is `predicted`.",
    )
    error_percent: Annotated[Real, Field(gt=0, le=100)] | None = Field(
        default=None,
        description=(
            "With `predict`, the error that nine in ten predictions must not exceed, in percent of"
            " the sharing ratio; at least the error of a measurement. Default, the difference that"
            " two measurements of one mix may have."
        ),
    )

    def runs(self) -> Iterator[peak.Run]:
        for point in range(1, self.points + 1):
            yield Run.of_point(point, predict=self.predict, within_percent=self.error_percent)

    def runs_for(self, rate_shares: tuple[float, ...]) -> Iterator[peak.Run]:
        """Return the runs for a demand.

        With more than two tenants, one point is the demand's mix. Users ask about this mix, so it
        is never predicted.
        """
        runs = self.runs()
        if len(rate_shares) > 2:
            yield peak.Run.demanded(rate_shares)
            runs = islice(runs, self.points - 1)
        yield from runs

    def problems(self, tenants: Sequence[str]) -> Problems:
        if len(tenants) < 2:
            yield (), "needs at least two tenants"
        if self.error_percent is not None and not self.predict:
            yield ("error_percent",), "is only for predict: true"
        most = most_points(len(tenants))
        if len(tenants) > 2 and self.points > most:
            yield ("points",), f"must be <= {most}, the number of mixes of {len(tenants)} tenants"


def most_points(tenants: int) -> int:
    """Return the number of mixes of three or more tenants (`perseus.peak.frontier`)."""
    return 1 + tenants * (tenants - 1) // 2 + tenants
