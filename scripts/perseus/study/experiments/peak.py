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
"""Name of the mix whose rates have the ratio of the typical rates in the demand of the study."""


class Run(ExperimentRun):
    """Search for the peak on a load line.

    `line` is the type of the load line:

    - "dedicated": one tenant is alone on the server, and its rate rises
    - "mix": the rates of all tenants rise in the ratio `weights` (in units of the dedicated peaks)
      or in the ratio `rate_shares` (in requests/s)
    - "hold": the tenant `background_tenant` stays at `background_percent` % of its dedicated peak,
      and the rates of all other tenants rise
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
        """Return the search for a dedicated peak. `preset` is None for the preset of the study. Any
        other preset becomes part of the name of the search."""
        return cls(line="dedicated", name=f"peak-{preset}" if preset else "peak")

    @classmethod
    def mix(cls, weights: Sequence[int]) -> Run:
        """Return the search for the peak of a mix. `weights` is the ratio of the rates in units of
        the dedicated peaks. The name of the search contains the reduced ratio: 1-1 for [2, 2]."""
        divisor = math.gcd(*weights) or 1
        reduced = tuple(weight // divisor for weight in weights)
        return cls(line="mix", name="mix-" + "-".join(map(str, reduced)), weights=reduced)

    @classmethod
    def demanded(cls, rate_shares: Sequence[float]) -> Run:
        """Return the search for the peak of the mix whose rates have the ratio of the demand.
        `rate_shares` contains each tenant's share (0 to 1) of all requests."""
        return cls(line="mix", name=DEMANDED, rate_shares=tuple(rate_shares))

    @classmethod
    def hold(cls, tenant: str, percent: int) -> Run:
        """Return the search in which `tenant` stays at `percent` % of its dedicated peak while the
        rates of all other tenants rise."""
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
        """Return a copy of the search for the mix `weights`. Perseus calls this function for a mix
        of a frontier, whose weights depend on the results of earlier mixes."""
        return self.model_copy(update={"weights": weights})

    def background_tenants(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the tenants in `names` that stay at a fixed rate during the search."""
        return tuple(name for name in names if name == self.background_tenant)

    def background_rps(
        self, names: Sequence[str], dedicated_rps: Mapping[str, float]
    ) -> dict[str, float]:
        """Return the fixed rate of each background tenant in requests/s. `dedicated_rps` contains
        the dedicated peaks in requests/s."""
        share = self.background_percent / 100
        return {name: share * dedicated_rps[name] for name in self.background_tenants(names)}

    @property
    def background_at(self) -> str:
        """The fixed rates of the background tenants as text, such as "50 %" (of the dedicated peak)
        or "20 requests/s"."""
        return f"{self.background_percent} %"


DEDICATED = Run.dedicated()
"""The search for a dedicated peak with the preset of the study."""


class Settings(ExperimentSettings):
    """Search the largest load at which every tenant keeps its SLA."""

    kind: Literal["peak"] = Field(
        description="`peak` searches the largest load at which every tenant keeps its SLA."
    )
    mixes: Annotated[tuple[tuple[Weight, ...], ...], Field(min_length=1)] | None = Field(
        default=None,
        description=(
            "The ratios (mixes) in which the rates of all tenants rise together. Perseus searches"
            " one peak for each mix. A mix has one weight for each tenant, in the order of the"
            " tenants. In the mix [3, 1], the first tenant has three times as large a share of its"
            " dedicated peak as the second tenant."
        ),
    )
    hold: Text | None = Field(
        default=None,
        description=(
            "In place of `mixes`: a tenant that stays at a fixed rate while the rates of all other"
            " tenants rise. Write its fixed rates in `percents_of_peak`."
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
