"""Define the experiment `soak`: send requests at fixed rates for hours, to find memory leaks and
latencies that slowly rise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Final, Literal

from pydantic import Field

from perseus.study.base import Whole
from perseus.study.experiments.base import ExperimentRun, ExperimentSettings, Rate
from perseus.study.problems import Problems

WINDOWS: Final = 60
"""Perseus divides the duration of the experiment by this number to get the length of a window. The
length is at least `SHORTEST_WINDOW_S` and at most `LONGEST_WINDOW_S` seconds. The result of the
experiment is valid if at least half of its windows are valid."""

SHORTEST_WINDOW_S, LONGEST_WINDOW_S = 2.0, 60.0
"""Smallest and largest length of a window in seconds. A shorter window would contain too few
requests to compute a percentile of the latency. A longer window would need too much memory, since
the client keeps all requests of a window in memory."""

Percent = Annotated[Whole, Field(ge=1, le=99)]


class Run(ExperimentRun):
    """Send requests of all tenants at fixed rates to one server, in windows of `window_s` seconds.

    Either `percents_of_peak` (in percent of the dedicated peaks) or `rates_rps` contains one rate
    for each tenant; the other list is empty.
    """

    kind: Literal["soak"] = "soak"
    name: str
    duration_s: float
    window_s: float
    percents_of_peak: tuple[int, ...] = ()
    rates_rps: tuple[float, ...] = ()

    @property
    def needs_dedicated_peaks(self) -> bool:
        return bool(self.percents_of_peak)


class Settings(ExperimentSettings):
    """Send requests at fixed rates to one server for hours."""

    kind: Literal["soak"] = Field(
        description=(
            "`soak` sends requests at fixed rates to one server for hours, and measures how the"
            " latency, the memory of the server and its number of open file descriptors change."
        )
    )
    percents_of_peak: Annotated[tuple[Percent, ...], Field(min_length=1)] | None = Field(
        default=None,
        description="The rate of each tenant, in the order of the tenants, in percent of its"
        " dedicated peak.",
    )
    rates_rps: Annotated[tuple[Rate, ...], Field(min_length=1)] | None = Field(
        default=None,
        description="The rate of each tenant in requests/s, in the order of the tenants, in place"
        " of `percents_of_peak`.",
    )
    duration_s: Annotated[Whole, Field(ge=60, le=86_400)] = Field(
        default=3600, description="Duration of the load in seconds, at most one day."
    )

    def runs(self) -> Iterator[Run]:
        percents, rates_rps = self.percents_of_peak or (), self.rates_rps or ()
        level = "-".join(f"{each:.10g}".replace(".", "_") for each in percents or rates_rps)
        yield Run(
            name=f"soak-{level}{'rps' if rates_rps else ''}",
            duration_s=self.duration_s,
            window_s=min(max(self.duration_s / WINDOWS, SHORTEST_WINDOW_S), LONGEST_WINDOW_S),
            percents_of_peak=percents,
            rates_rps=rates_rps,
        )

    def problems(self, tenants: Sequence[str]) -> Problems:
        given = {"percents_of_peak": self.percents_of_peak, "rates_rps": self.rates_rps}
        levels = {key: each for key, each in given.items() if each is not None}
        if not levels:
            yield (), "`soak` needs `percents_of_peak:` or `rates_rps:` (a number for each tenant)"
        if len(levels) > 1:
            yield (), "has both `percents_of_peak:` and `rates_rps:` (remove one of them)"
        for key, each in levels.items():
            if len(each) != len(tenants):
                yield (key,), f"has {len(each)} numbers for {len(tenants)} tenants"
