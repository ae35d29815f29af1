"""Describe a window of load: its plan, its observation and its verdict."""

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
"""Phases of the windows whose rates lie on the load line. Only windows of these phases are evidence
for the limit of the load line."""


@dataclass(frozen=True)
class WindowPlan:
    """A planned window: the rate of each tenant, and the times at which the runner computes a
    verdict.

    In a closed loop, `rates_rps` is empty, and `in_flight` contains the number of requests in
    flight of each tenant. Requests with an intended send time in the first `settle_s` seconds do
    not count for the verdict. The runner computes a verdict at each time in `looks_s`, in seconds
    since the start of the window. If the runner needs no further data after a verdict, the window
    ends. At the latest, the window ends at the last time in `looks_s`. `tolerance` states the
    disturbances that a valid window may have.
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
    """A window with its verdict.

    `phase` is the purpose of the window: a Phase in a search, another text in other experiments.
    `scale` is the load factor, NaN if the window is not on the load line. In a sweep of
    concurrencies, `scale` is the number of requests in flight.
    """

    phase: str
    scale: float
    settle_s: float
    elapsed_s: float
    tenants: tuple[TenantWindow, ...]
    seen: Observation

    @property
    def on_the_line(self) -> bool:
        """Return whether the window is evidence for the limit of the load line."""
        return self.phase in ON_THE_LINE

    @property
    def verdict(self) -> Verdict:
        """Return the worst verdict of the tenants, because each tenant must keep its SLA. From the
        worst to the best, the verdicts are FAIL, INVALID, UNDECIDED and PASS.

        If one tenant fails, the window fails, even if the verdict of another tenant is invalid.
        """
        found = {tenant.verdict for tenant in self.tenants}
        order = (Verdict.FAIL, Verdict.INVALID, Verdict.UNDECIDED)
        return next((verdict for verdict in order if verdict in found), Verdict.PASS)

    @property
    def punctual(self) -> bool:
        """Return whether the client sent all requests on schedule."""
        return all(tenant.punctual for tenant in self.tenants)

    @property
    def invalid_tenants(self) -> tuple[TenantWindow, ...]:
        return tuple(each for each in self.tenants if each.verdict is Verdict.INVALID)

    @property
    def host_is_busy(self) -> bool:
        """Return whether `TenantWindow.host_is_busy` is true for any tenant."""
        return any(tenant.host_is_busy for tenant in self.tenants)

    @property
    def passes_roughly(self) -> bool:
        """Return whether the window passes. An undecided window passes if, for every tenant with
        load, the latency at the percentile of the SLA is within the SLA."""
        if self.verdict is Verdict.UNDECIDED:
            busy = [tenant for tenant in self.tenants if tenant.offered_rps > 0]
            return not any(tenant.sla_percentile_ms > tenant.sla_ms for tenant in busy)
        return self.verdict is Verdict.PASS
