"""Load on a system: load lines, windows of load, and what a system under load must offer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from perseus.peak.system import Observation
from perseus.peak.verdict import TenantWindow, Verdict


class Phase(StrEnum):
    """What a window is for."""

    WARM_UP = "warm_up"
    BRACKET = "bracket"
    BISECT = "bisect"
    ROOT = "root"
    CONFIRM = "confirm"
    STEADY = "steady"
    ALONE = "alone"
    CONCURRENCY = "concurrency"

    @property
    def on_the_line(self) -> bool:
        """Whether the rates are a point of the load line, so that the window bears on its limit."""
        return self in (Phase.BRACKET, Phase.BISECT, Phase.ROOT, Phase.CONFIRM)


@dataclass(frozen=True)
class Window:
    """A judged window.

    `scale` is its point of the load line, NaN where it is not on the line; in a sweep of
    concurrencies it is the requests in flight.
    """

    phase: Phase
    scale: float
    settle_s: float
    elapsed_s: float
    tenants: tuple[TenantWindow, ...]
    seen: Observation

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
    def passes_roughly(self) -> bool:
        """Good enough to look higher: an undecided window goes by what was observed."""
        if self.verdict is Verdict.UNDECIDED:
            busy = [tenant for tenant in self.tenants if tenant.offered_rps > 0]
            return all(tenant.sla_percentile_ms <= tenant.sla_ms for tenant in busy)
        return self.verdict is Verdict.PASS
