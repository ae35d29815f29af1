"""Define the experiment `peak`: search the largest load at which every tenant keeps its SLA."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal, Self

from pydantic import Field

from perseus.study.base import Text, Whole
from perseus.study.experiments.base import ExperimentRun, ExperimentSettings
from perseus.study.hints import meant_or_known
from perseus.study.problems import Problems

Weight = Annotated[Whole, Field(ge=0, le=1000)]
Percent = Annotated[Whole, Field(ge=1, le=99)]
DEMANDED: Final = "mix-demand"
"""Name of the mix that follows from the demand of a study."""


class Run(ExperimentRun):
    """Search along a load line, whose rates are in units of the dedicated peaks.

    `line` is "dedicated" (one tenant alone), "mix" (all tenants rise together in the ratio of
    `weights`) or "hold" (`background_tenant` stays at `background_percent` % of its dedicated peak,
    and all other rates rise). The rates of a mix with `rate_shares` rise in the ratio of these
    shares of all requests, so its weights follow from the dedicated peaks. Kinds that search along
    other load lines are subclasses.
    """

    kind: str = "peak"
    name: str
    line: Literal["dedicated", "mix", "hold"]
    weights: tuple[int, ...] = ()
    rate_shares: tuple[float, ...] = ()
    background_tenant: str = ""
    background_percent: int = 0

    @classmethod
    def dedicated(cls, preset: str | None = None) -> Run:
        """Return the load line of a tenant alone. Its name contains `preset`, which is None for the
        preset of the study."""
        return cls(line="dedicated", name=f"peak-{preset}" if preset else "peak")

    @classmethod
    def mix(cls, weights: Sequence[int]) -> Run:
        """Return the load line on which all rates rise in this ratio, in units of dedicated peaks;
        [2, 2] is the same load line as [1, 1]."""
        divisor = math.gcd(*weights) or 1
        reduced = tuple(weight // divisor for weight in weights)
        return cls(line="mix", name="mix-" + "-".join(map(str, reduced)), weights=reduced)

    @classmethod
    def demanded(cls, rate_shares: Sequence[float]) -> Run:
        """Return the load line on which all rates rise in the proportion of these request rates."""
        return cls(line="mix", name=DEMANDED, rate_shares=tuple(rate_shares))

    @classmethod
    def hold(cls, tenant: str, percent: int) -> Run:
        """Return the load line on which `tenant` stays at `percent` % of its dedicated peak while
        all other rates rise."""
        return cls(
            line="hold",
            name=f"hold-{tenant}-{percent}",
            background_tenant=tenant,
            background_percent=percent,
        )

    @property
    def needs_dedicated_peaks(self) -> bool:
        return self.line != "dedicated"

    def of_weights(self, weights: tuple[int, ...]) -> Self:
        """Return the load line of a mix whose weights become known only during the measurement."""
        return self.model_copy(update={"weights": weights})

    def background_tenants(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the tenants that stay at a fixed rate on this load line."""
        return tuple(name for name in names if name == self.background_tenant)

    def background_rps(
        self, names: Sequence[str], dedicated_rps: Mapping[str, float]
    ) -> dict[str, float]:
        """Return the fixed rate of each tenant that stays at a fixed rate, in requests/s."""
        share = self.background_percent / 100
        return {name: share * dedicated_rps[name] for name in self.background_tenants(names)}

    @property
    def background_at(self) -> str:
        """The fixed rates of this load line as text, such as "50 %" of the dedicated peak."""
        return f"{self.background_percent} %"


DEDICATED = Run.dedicated()
"""Search for a dedicated peak, which Perseus runs for every tenant of a shared scenario."""


class Settings(ExperimentSettings):
    """Search the largest load at which every tenant keeps its SLA."""

    kind: Literal["peak"] = Field(
        description="`peak` searches the largest load at which every tenant keeps its SLA."
    )
    mixes: Annotated[tuple[tuple[Weight, ...], ...], Field(min_length=1)] | None = Field(
        default=None,
        description=(
            "The mixes. A mix such as [3, 1] is the ratio in which the rates of the tenants rise"
            " together, in units of their dedicated peaks and in the order of the tenants."
        ),
    )
    hold: Text | None = Field(
        default=None,
        description=(
            "A tenant that stays at a fixed rate while the rates of all other tenants rise."
        ),
    )
    percents_of_peak: Annotated[tuple[Percent, ...], Field(min_length=1)] | None = Field(
        default=None,
        description=(
            "The fixed rates of the tenant `hold`, in percent of its dedicated peak. Perseus runs"
            " one search for each number in the list."
        ),
    )

    def runs(self) -> Iterator[Run]:
        for weights in self.mixes or ():
            yield Run.mix(weights)
        if self.hold is not None:
            for percent in self.percents_of_peak or ():
                yield Run.hold(self.hold, percent)

    def renamed(self, names: Mapping[str, str]) -> Self:
        tenant = names.get(self.hold) if self.hold is not None else None
        return self.model_copy(update={"hold": tenant}) if tenant is not None else self

    def problems(self, tenants: Sequence[str]) -> Problems:
        if len(tenants) > 1 and self.mixes is None and self.hold is None:
            yield (), "a shared scenario needs `mixes:`, such as [[1, 1]], or `hold:`"
        if len(tenants) == 1 and (self.mixes is not None or self.hold is not None):
            yield (), "`mixes:` and `hold:` need at least two tenants"
        if self.mixes is not None and self.hold is not None:
            yield (), "has both `mixes:` and `hold:` (write two experiments)"
        if (self.hold is None) != (self.percents_of_peak is None):
            yield (), "needs both `hold:` and `percents_of_peak:`, or neither"
        if self.hold is not None and self.hold not in tenants:
            hint = meant_or_known(self.hold, tenants)
            yield ("hold",), f"{self.hold!r} is not a tenant of this scenario{hint}"
        for i, mix in enumerate(self.mixes or ()):
            if len(mix) != len(tenants):
                yield ("mixes", i), f"has {len(mix)} weights for {len(tenants)} tenants"
            elif not any(mix):
                yield ("mixes", i), "at least one weight must be above 0"
