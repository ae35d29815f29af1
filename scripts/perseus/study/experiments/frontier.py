"""Define the experiment `frontier`: search the peaks of several mixes, to find all combinations of
rates that a server carries. In a mix, the rates of the tenants rise in a fixed ratio.

With two tenants, Perseus chooses each new mix from the results of the earlier mixes. With three or
more tenants, Perseus takes the mixes from a fixed list.
"""

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
    """Search for the peak of one mix of the frontier.

    `point` is the number of the mix in the frontier: 1, 2, ... If `predict` is true, Perseus
    predicts the peak, and measures it only if the estimated error of the prediction is too large.
    `predict_within_percent` is the largest accepted error in percent. If it is None, Perseus
    accepts the difference that chance may cause between two measurements of the same mix.
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
        return self.predict


def _name(point: int) -> str:
    return f"frontier-{point}"


class Settings(ExperimentSettings):
    """Find the peaks of several mixes."""

    kind: Literal["frontier"] = Field(
        description=(
            "`frontier` searches the peaks of several mixes (ratios of the tenants' rates) that"
            " Perseus chooses. For two tenants, Perseus chooses each next mix where the frontier"
            " measured so far bends most or is most uncertain. For three or more tenants, Perseus"
            " measures the first `points` mixes of this list: (1) the ratio of the typical rates of"
            " the `demand`, if the demand names the models of all tenants; (2) all tenants with"
            " equal weights; (3) for each pair of tenants, only these two tenants, with equal"
            " weights; (4) for each tenant, a mix of all tenants in which this tenant has twice the"
            " weight of each other tenant."
        )
    )
    points: Annotated[Whole, Field(ge=1, le=100)] = Field(
        default=5, description="Number of mixes. Perseus searches one peak for each mix."
    )
    predict: Flag = Field(
        default=False,
        description=(
            "If true, Perseus may predict the sharing ratio of a mix and not measure it. Perseus"
            " uses the prediction if its estimated error is at most `error_percent`. The prediction"
            " uses the results of the dedicated peaks, of earlier mixes, and of scenarios with"
            " several copies of one model. In the tables, the verdict of a predicted mix is"
            " `predicted`."
        ),
    )
    error_percent: Annotated[Real, Field(gt=0, le=100)] | None = Field(
        default=None,
        description=(
            "The largest accepted error of a prediction, in percent of the sharing ratio; only for"
            " `predict: true`. The estimated error of a prediction is an error that 90 % of the"
            " predictions do not exceed. The estimated error is never smaller than the error of a"
            " measurement. If the estimated error is larger than `error_percent`, Perseus measures"
            " the mix. Default: the difference that chance may cause between two measurements of"
            " the same mix."
        ),
    )

    def runs(self) -> Iterator[peak.Run]:
        for point in range(1, self.points + 1):
            yield Run.of_point(point, predict=self.predict, within_percent=self.error_percent)

    def runs_for(self, rate_shares: tuple[float, ...]) -> Iterator[peak.Run]:
        """Yield the runs of the experiment, one for each mix.

        `rate_shares` contains each tenant's share (0 to 1) of all requests of the demand, or is
        empty. With three or more shares, the rates of the first mix have the ratio of the shares.
        Perseus always measures this mix and never predicts its peak.
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
            yield ("error_percent",), "applies only to `predict: true`"
        most = most_points(len(tenants))
        if len(tenants) > 2 and self.points > most:
            yield ("points",), f"must be <= {most} for {len(tenants)} tenants"


def most_points(tenants: int) -> int:
    """Return how many mixes the list `perseus.peak.frontier.rays` contains for a frontier of three
    or more tenants."""
    return 1 + tenants * (tenants - 1) // 2 + tenants
