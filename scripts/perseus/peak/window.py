"""A window of load, as planned and as judged."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from perseus.peak.system import Observation
from perseus.peak.verdict import TenantWindow, Tolerance, Verdict


class Phase(StrEnum):
    """The purpose of a window of a search."""

    WARM_UP = "warm_up"
    BRACKET = "bracket"
    BISECT = "bisect"
    NEAR_LIMIT = "near_limit"
    CERTIFY = "certify"
    PROBE = "probe"
    ALONE = "alone"


ON_THE_LINE: Final = (Phase.BRACKET, Phase.BISECT, Phase.NEAR_LIMIT, Phase.CERTIFY)
"""Phases whose rates are on the load line, so that their windows are evidence of its limit."""


@dataclass(frozen=True)
class WindowPlan:
    """A planned window: a rate per tenant, and the times of its looks.

    A closed loop has no rates, but a number `in_flight` of requests of each tenant. Requests
    intended in the first `settle_s` do not count. The window ends at one of `looks_s`, seconds
    since its start, and at the last of them in any case. A window is valid within its `tolerance`.
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

    `phase` is its purpose: a Phase in a search, another word in other experiments. `scale` is its
    load factor, NaN if the window is not on the load line; in a sweep of concurrencies it is the
    number of requests in flight.
    """

    phase: str
    scale: float
    settle_s: float
    elapsed_s: float
    tenants: tuple[TenantWindow, ...]
    seen: Observation

    @property
    def on_the_line(self) -> bool:
        """Whether the window is evidence of the limit of the load line."""
        return self.phase in ON_THE_LINE

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of its tenants, since each must keep its SLA.

        A failed tenant decides, even if the client made the part of another tenant invalid.
        """
        found = {tenant.verdict for tenant in self.tenants}
        order = (Verdict.FAIL, Verdict.INVALID, Verdict.UNDECIDED)
        return next((verdict for verdict in order if verdict in found), Verdict.PASS)

    @property
    def punctual(self) -> bool:
        """Whether all requests were sent on schedule."""
        return all(tenant.punctual for tenant in self.tenants)

    @property
    def invalid_tenants(self) -> tuple[TenantWindow, ...]:
        """Tenants whose part is invalid because of their client or the host."""
        return tuple(each for each in self.tenants if each.verdict is Verdict.INVALID)

    @property
    def host_is_busy(self) -> bool:
        """Whether other processes exceed every tolerance."""
        return any(tenant.host_is_busy for tenant in self.tenants)

    @property
    def passes_roughly(self) -> bool:
        """Whether the search may try a higher load: an undecided window counts by its observed
        percentile."""
        if self.verdict is Verdict.UNDECIDED:
            busy = [tenant for tenant in self.tenants if tenant.offered_rps > 0]
            return not any(tenant.sla_percentile_ms > tenant.sla_ms for tenant in busy)
        return self.verdict is Verdict.PASS
