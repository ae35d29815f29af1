"""Define the windows of load: the plan of a window, and its measured data with the verdict."""

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
"""Phases in which all tenants have their rates on the load line. Perseus estimates the limit of the
load line from windows of these phases only."""


@dataclass(frozen=True)
class WindowPlan:
    """A planned window: the rate of each tenant, and the times at which the runner
    (`window_runner`) computes a verdict.

    In a closed loop, `rates_rps` is empty, and `in_flight` contains the number of requests in
    flight of each tenant. Requests with an intended send time in the first `settle_s` seconds do
    not count for the verdict. The runner computes a verdict at each time in `looks_s`, in seconds
    since the start of the window. As soon as a verdict needs no additional data, the window ends.
    At the latest, the window ends at the last time in `looks_s`. `tolerance` states the
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
    """A measured window: its data (`seen`), and a verdict on each tenant.

    `phase` is the purpose of the window: a Phase in a search, another text in other experiments.
    `scale` is the load factor. In a closed loop outside a search, `scale` is the number of requests
    in flight, and in the phase `within` of a catalogue, it is the rate in requests/s. In all other
    windows whose rates do not lie on a load line, `scale` is NaN.
    """

    phase: str
    scale: float
    settle_s: float
    elapsed_s: float
    tenants: tuple[TenantWindow, ...]
    seen: Observation

    @property
    def on_the_line(self) -> bool:
        """Return whether the rates of the window lie on the load line, so that the window is
        evidence of the limit."""
        return self.phase in ON_THE_LINE

    @property
    def verdict(self) -> Verdict:
        """Return the worst verdict of all tenants, because each tenant must keep its SLA.

        From the worst to the best, the verdicts are FAIL, INVALID, UNDECIDED and PASS. A window in
        which one tenant fails is a failed window, even if the verdict on another tenant is invalid.
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
        """Return whether other processes made the window invalid, and used more of the server than
        ON_BUSY_HOST allows."""
        return any(tenant.host_is_busy for tenant in self.tenants)

    @property
    def passes_roughly(self) -> bool:
        """Return whether the window passes, or is undecided although the observed latencies keep
        every SLA.

        The observed latencies of a tenant keep its SLA if the percentile that the SLA names is at
        most the latency limit. For bracketing and bisection, this much certainty is enough.
        """
        if self.verdict is Verdict.UNDECIDED:
            busy = [tenant for tenant in self.tenants if tenant.offered_rps > 0]
            return not any(tenant.sla_percentile_ms > tenant.sla_ms for tenant in busy)
        return self.verdict is Verdict.PASS
