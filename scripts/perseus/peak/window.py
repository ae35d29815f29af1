"""A window of load: as it is planned, and as it was judged."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from perseus.peak.system import Observation
from perseus.peak.verdict import TenantWindow, Tolerance, Verdict


class Phase(StrEnum):
    """What a window of a search is for."""

    WARM_UP = "warm_up"
    BRACKET = "bracket"
    BISECT = "bisect"
    ROOT = "root"
    CONFIRM = "confirm"
    SPEED = "speed"
    ALONE = "alone"


ON_THE_LINE: Final = (Phase.BRACKET, Phase.BISECT, Phase.ROOT, Phase.CONFIRM)
"""Phases whose rates are a point of the load line, so that their windows bear on its limit."""


@dataclass(frozen=True)
class WindowPlan:
    """A window as it is to be offered: a rate per tenant, and when it is looked at.

    A closed loop has no rates, but so many requests of each tenant `in_flight`. What is intended in
    the first `settle_s` does not count. The window ends at one of `looks_s`, seconds since its
    start, and at the last of them in any case. It counts where no more than `tolerance` went on.
    """

    phase: Phase
    scale: float
    rates_rps: tuple[float, ...]
    settle_s: float
    looks_s: tuple[float, ...]
    tolerance: Tolerance
    in_flight: tuple[int, ...] = ()


@dataclass(frozen=True)
class Window:
    """A judged window.

    `phase` is what it is for: a Phase in a search, a word of its own in another experiment.
    `scale` is its point of the load line, NaN where it is not on the line; in a sweep of
    concurrencies it is the requests in flight.
    """

    phase: str
    scale: float
    settle_s: float
    elapsed_s: float
    tenants: tuple[TenantWindow, ...]
    seen: Observation

    @property
    def on_the_line(self) -> bool:
        """Whether it bears on the limit of the load line."""
        return self.phase in ON_THE_LINE

    @property
    def verdict(self) -> Verdict:
        """The worst of the tenants': every one of them must keep its SLA.

        One that fails it decides, even if the client of another spoilt that one's part.
        """
        found = {tenant.verdict for tenant in self.tenants}
        order = (Verdict.FAIL, Verdict.INVALID, Verdict.UNDECIDED)
        return next((verdict for verdict in order if verdict in found), Verdict.PASS)

    @property
    def punctual(self) -> bool:
        """Whether all requests were sent when they should have been."""
        return all(tenant.punctual for tenant in self.tenants)

    @property
    def spoilt(self) -> tuple[TenantWindow, ...]:
        """The tenants of which it says nothing, by their client or the host."""
        return tuple(each for each in self.tenants if each.verdict is Verdict.INVALID)

    @property
    def crowded_out(self) -> bool:
        """Whether others used more of the host than is ever tolerated."""
        return any(tenant.crowded_out for tenant in self.tenants)

    @property
    def passes_roughly(self) -> bool:
        """Good enough to look higher: an undecided window goes by what was observed."""
        if self.verdict is Verdict.UNDECIDED:
            busy = [tenant for tenant in self.tenants if tenant.offered_rps > 0]
            return not any(tenant.sla_percentile_ms > tenant.sla_ms for tenant in busy)
        return self.verdict is Verdict.PASS
