"""Experiment `peak`: search the largest load at which every tenant keeps its SLA."""

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
"""Name of the mix that follows from a study's demand."""


class Run(ExperimentRun):
    """A search along a load line, in units of dedicated peaks.

    `line` is "dedicated" (one tenant alone), "mix" (all tenants rise together in the ratio of
    `weights`) or "hold" (`background_tenant` stays at `background_percent` % of its dedicated peak,
    the others rise). A mix with `rate_shares`, of all requests, rises in their ratio: its weights
    follow from the dedicated peaks. Kinds that search along other lines are subclasses.
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
        """Return a tenant alone; named after the preset if it differs from the study's."""
        return cls(line="dedicated", name=f"peak-{preset}" if preset else "peak")

    @classmethod
    def mix(cls, weights: Sequence[int]) -> Run:
        """All rates rise in proportion; [2, 2] is the same line as [1, 1]."""
        divisor = math.gcd(*weights) or 1
        reduced = tuple(weight // divisor for weight in weights)
        return cls(line="mix", name="mix-" + "-".join(map(str, reduced)), weights=reduced)

    @classmethod
    def demanded(cls, rate_shares: Sequence[float]) -> Run:
        """All rates rise in the proportion of these request rates."""
        return cls(line="mix", name=DEMANDED, rate_shares=tuple(rate_shares))

    @classmethod
    def hold(cls, tenant: str, percent: int) -> Run:
        """`tenant` stays at `percent` % of its dedicated peak, while the others rise."""
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
        """Return the same line for a mix whose weights are known only when it is measured."""
        return self.model_copy(update={"weights": weights})

    def background_tenants(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return tenants that stay at a fixed rate."""
        return tuple(name for name in names if name == self.background_tenant)

    def background_rps(
        self, names: Sequence[str], dedicated_rps: Mapping[str, float]
    ) -> dict[str, float]:
        """Return the fixed rate of each of them."""
        share = self.background_percent / 100
        return {name: share * dedicated_rps[name] for name in self.background_tenants(names)}

    @property
    def background_at(self) -> str:
        """The fixed rate as text."""
        return f"{self.background_percent} %"


DEDICATED = Run.dedicated()
"""The search of one tenant alone, which every tenant of a shared scenario gets."""


class Settings(ExperimentSettings):
    """Search the largest load at which every tenant keeps its SLA."""

    kind: Literal["peak"] = Field(
        description="`peak` searches the largest load at which every tenant keeps its SLA."
    )
    mixes: Annotated[tuple[tuple[Weight, ...], ...], Field(min_length=1)] | None = Field(
        default=None,
        description="Ratios in which the tenants' rates rise together, in units of their dedicated"
        " peaks and in the order of the tenants, such as [3, 1].",
    )
    hold: Text | None = Field(
        default=None,
        description="A tenant that stays at a fixed rate while the rates of the others rise.",
    )
    percents_of_peak: Annotated[tuple[Percent, ...], Field(min_length=1)] | None = Field(
        default=None,
        description="The rates of that tenant, in percent of its dedicated peak."
        " Each number is one search.",
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
            yield (), "a shared scenario needs mixes:, such as [[1, 1]], or hold:"
        if len(tenants) == 1 and (self.mixes is not None or self.hold is not None):
            yield (), "mixes: and hold: need at least two tenants"
        if self.mixes is not None and self.hold is not None:
            yield (), "has both mixes: and hold: (make them two experiments)"
        if (self.hold is None) != (self.percents_of_peak is None):
            yield (), "hold: and percents_of_peak: go together"
        if self.hold is not None and self.hold not in tenants:
            hint = meant_or_known(self.hold, tenants)
            yield ("hold",), f"{self.hold!r} is not a tenant of this scenario{hint}"
        for i, mix in enumerate(self.mixes or ()):
            if len(mix) != len(tenants):
                yield ("mixes", i), f"has {len(mix)} numbers for {len(tenants)} tenants"
            elif not any(mix):
                yield ("mixes", i), "at least one number must be above 0"
