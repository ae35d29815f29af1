"""Define the experiment `background`: search the peak of one tenant while all other tenants stay at
fixed rates, as in the PERSEUS paper of 2020."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field

from perseus.study.base import Text
from perseus.study.experiments import peak
from perseus.study.experiments.base import ExperimentSettings, Rate
from perseus.study.hints import meant_or_known
from perseus.study.problems import Problems

Rates = Annotated[
    Rate | tuple[Rate, ...],
    Field(
        description=(
            "the rates of the other tenants in requests/s: one number for all of them, or a list"
            " with one number for each of them, in the order of the tenants"
        )
    ),
]


class Run(peak.Run):
    """Search the peak of the tenant `searched`, and vary only the rate of this tenant.

    All other tenants stay at `background_percent` % of their dedicated peaks, or at the rates
    `rates_rps` in requests/s. `rates_rps` contains one rate for all of these tenants, or one rate
    for each of these tenants.
    """

    kind: Literal["background"] = "background"
    line: Literal["hold"] = "hold"
    searched: str
    rates_rps: tuple[float, ...] = ()

    def background_tenants(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in names if name != self.searched)

    def background_rps(
        self, names: Sequence[str], dedicated_rps: Mapping[str, float]
    ) -> dict[str, float]:
        if not self.rates_rps:
            return super().background_rps(names, dedicated_rps)
        others = self.background_tenants(names)
        rates_rps = self.rates_rps * (len(others) if len(self.rates_rps) == 1 else 1)
        return dict(zip(others, rates_rps, strict=True))

    @property
    def background_at(self) -> str:
        if not self.rates_rps:
            return super().background_at
        return ", ".join(f"{rate:.10g}" for rate in self.rates_rps) + " requests/s"


class Settings(ExperimentSettings):
    """Find the peak of one tenant while all other tenants stay at fixed rates."""

    kind: Literal["background"] = Field(
        description="`background` searches the peak of one tenant while all other tenants stay"
        " at fixed rates, as in the PERSEUS paper of 2020."
    )
    search: Text = Field(
        description="The tenant whose peak Perseus searches.", examples=["squeezenet1_1"]
    )
    percents_of_peak: Annotated[tuple[peak.Percent, ...], Field(min_length=1)] | None = Field(
        default=None,
        description=(
            "The fixed rates of the other tenants, in percent of their dedicated peaks. Perseus"
            " runs one search for each number in the list. In each search, all other tenants have"
            " the same percentage."
        ),
        examples=[[25, 50, 75]],
    )
    rates_rps: Annotated[tuple[Rates, ...], Field(min_length=1)] | None = Field(
        default=None,
        description=(
            "The fixed rates of the other tenants in requests/s, in place of `percents_of_peak`."
            " Perseus runs one search for each item of the list. An item is either one rate, which"
            " all other tenants get, or a list such as [20, 5] with one rate for each other tenant,"
            " in the order of the tenants."
        ),
        examples=[[20, 40]],
    )

    def runs(self) -> Iterator[Run]:
        for percent in self.percents_of_peak or ():
            name = f"background-{self.search}-{percent}"
            yield Run(name=name, searched=self.search, background_percent=percent)
        for rates in self.rates_rps or ():
            each = rates if isinstance(rates, tuple) else (rates,)
            at = "-".join(f"{rate:.10g}".replace(".", "_") for rate in each)
            name = f"background-{self.search}-at-{at}rps"
            yield Run(name=name, searched=self.search, rates_rps=each)

    def renamed(self, names: Mapping[str, str]) -> Self:
        return self.model_copy(update={"search": names.get(self.search, self.search)})

    def problems(self, tenants: Sequence[str]) -> Problems:
        if len(tenants) == 1:
            yield (), "`background` needs at least two tenants"
        if (self.percents_of_peak is None) == (self.rates_rps is None):
            yield (
                (),
                "needs the rates of the other tenants: write either `percents_of_peak:` or"
                " `rates_rps:`",
            )
        if self.search not in tenants:
            hint = meant_or_known(self.search, tenants)
            yield ("search",), f"{self.search!r} is not a tenant of this scenario{hint}"
        for i, rates in enumerate(self.rates_rps or ()):
            if isinstance(rates, tuple) and len(rates) != len(tenants) - 1:
                others = f"needs {len(tenants) - 1}: one for each tenant other than `search`"
                yield ("rates_rps", i), f"has {len(rates)} rates, but {others}"
