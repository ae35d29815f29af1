"""What a search found: the peak of a load line, and in words how and why it ended so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from perseus.peak import stats
from perseus.peak.paired import UNKNOWN_LIMITS, ModelLimits, Round
from perseus.peak.speed import Speed, change
from perseus.peak.verdict import QUIET, TenantWindow, Verdict, used_by_others
from perseus.peak.window import Phase, Window

CLIFF_STEP, CLIFF_LEAP = 1.25, 20.0
"""A cliff: a load higher by at most the first factor has a latency higher by over the second."""


class Outcome(StrEnum):
    """How a search ended."""

    OK = "ok"
    INFEASIBLE = "infeasible"
    BLOCKED = "blocked"
    UNCERTIFIED = "uncertified"
    PREDICTED = "predicted"
    CLIENT_LIMITED = "client_limited"
    DISTURBED = "disturbed"
    UNSTEADY = "unsteady"
    THROTTLED = "throttled"
    FAILED = "failed"

    @property
    def may_pass(self) -> bool:
        """Whether it is trouble that a fresh server, a little later, may be spared."""
        return self in (
            Outcome.UNSTEADY,
            Outcome.CLIENT_LIMITED,
            Outcome.DISTURBED,
            Outcome.THROTTLED,
            Outcome.FAILED,
        )

    @property
    def is_answer(self) -> bool:
        """Whether it says something of the server that was asked about."""
        return not self.may_pass and self is not Outcome.BLOCKED


@dataclass(frozen=True)
class Peak:
    """What a search found, as scales of the load line; NaN where there is nothing to state.

    `certified` passed all its fresh windows (the last of them is `certified_window`, an index into
    `windows`, else -1), `estimate` is the median of the limit's posterior, and `posterior` holds
    draws from it, shape (draws,), none when no valid window bears on it; they are as wide as the
    host's speed wandered, too. `others` says what other processes took of the host meanwhile, and
    is empty where it was little. `speeds_rps` has, per tenant, what the busy server answered it
    alone each time that this was looked at, NaN without load, and `work_s` what a request cost it
    then (`peak.speed.work_s`), shape (parts,). `rounds` have what it answered them in turn, alone
    and together, and `model` what a simulated server carries that does the same work. `cliff` says
    where latency leaps from within the SLA to far beyond it, and is empty where it rises with the
    load.
    """

    outcome: Outcome
    reason: str
    certified: float
    certified_window: int
    estimate: float
    first_failing: float
    posterior: stats.Floats
    speeds_rps: tuple[tuple[float, ...], ...]
    work_s: tuple[stats.Floats, ...]
    rounds: tuple[Round, ...]
    model: ModelLimits
    cliff: str
    others: str
    windows: tuple[Window, ...]


def no_peak(outcome: Outcome, reason: str, windows: Sequence[Window] = ()) -> Peak:
    """The result when there was nothing to search, or nothing that can be stated."""
    nan = float("nan")
    return Peak(
        outcome,
        reason,
        nan,
        -1,
        nan,
        nan,
        np.empty(0),
        (),
        (),
        (),
        UNKNOWN_LIMITS,
        "",
        "",
        tuple(windows),
    )


def found_limit(outcome: str, estimate: float | None, posterior: Sequence[float]) -> bool:
    """Whether the limit of the server was found, or predicted: an estimate with its uncertainty.

    Not if a search found that of the client, or nothing. Whoever reads a record asks this.
    """
    stated = estimate is not None and bool(np.isfinite(estimate)) and len(posterior) > 0
    of_server = (Outcome.OK, Outcome.UNCERTIFIED, Outcome.PREDICTED)
    doubted = (Outcome.UNSTEADY, Outcome.DISTURBED, Outcome.THROTTLED)
    return stated and outcome in (*of_server, *doubted)


def cliff(windows: Sequence[Window], names: Sequence[str]) -> str:
    """Between the highest load that passes and the lowest that fails, where they are close."""
    valid = [w for w in windows if w.verdict is not Verdict.INVALID]
    passing = max(
        (w for w in valid if w.passes_roughly), key=lambda window: window.scale, default=None
    )
    if passing is None:
        return ""
    steps = [w for w in valid if passing.scale < w.scale <= CLIFF_STEP * passing.scale]
    # Else some of the latency is the client's, or of whatever else ran there.
    failing = [w for w in steps if w.punctual and _share_of_others(w) <= QUIET.foreign]
    if not failing:
        return ""
    above = min(failing, key=lambda window: window.scale)
    return "; ".join(
        f"{name} leaps from {low.sla_percentile_ms:.3g} ms at {low.offered_rps:.4g}/s to"
        f" {high.sla_percentile_ms:.3g} ms at {high.offered_rps:.4g}/s"
        for name, low, high in zip(names, passing.tenants, above.tenants, strict=True)
        if high.sla_percentile_ms > CLIFF_LEAP * low.sla_percentile_ms
    )


def _share_of_others(window: Window) -> float:
    share, _ = used_by_others(window.tenants[0])
    return share


def taken_by_others(windows: Sequence[Window]) -> str:
    """The most that other processes used of the host in a valid window, if it was not little."""
    valid = [w.tenants[0] for w in windows if w.verdict is not Verdict.INVALID]
    share, used = max(map(used_by_others, valid), default=(0.0, ""))
    return used if share > QUIET.foreign else ""


def server_failed_above(windows: Sequence[Window], low: float) -> bool:
    """Whether a valid window above `low` shows the server's limit, not only the client's."""
    return any(
        w.scale > low and w.verdict is not Verdict.INVALID and not w.passes_roughly for w in windows
    )


def what_spoilt(windows: Sequence[Window]) -> tuple[Outcome, str] | None:
    """What kept the load from going higher, where nothing shows the server's limit.

    A scale is lost when its window was spoilt at every attempt: by the client, or, if that was so
    at least as often, by what else ran on the host.
    """
    valid = {w.scale for w in windows if w.verdict is not Verdict.INVALID}
    lost = [w for w in windows if w.scale not in valid]
    spoilt = [tenant for window in lost for tenant in window.spoilt]
    passing = max((w.scale for w in windows if w.passes_roughly), default=0.0)
    lowest_is_lost = min(w.scale for w in windows) not in valid
    nothing_valid_fails = not server_failed_above(windows, passing)
    if spoilt and ((passing == 0 and lowest_is_lost) or nothing_valid_fails):
        return _by_whom(spoilt)
    return None


def what_spoilt_certifying(windows: Sequence[Window]) -> str:
    """What else ran on the host in all windows that were to certify a rate, if that spoilt them."""
    certifying = [window for window in windows if window.phase == Phase.CONFIRM]
    spoilt = [tenant for window in certifying for tenant in window.spoilt]
    if not spoilt or any(window.verdict is not Verdict.INVALID for window in certifying):
        return ""
    outcome, reason = _by_whom(spoilt)
    said = f"there is an estimate, but nothing that was to certify a rate counts: {reason}"
    return said if outcome is Outcome.DISTURBED else ""


def _by_whom(spoilt: Sequence[TenantWindow]) -> tuple[Outcome, str]:
    """Whether the host or the clients spoilt these, by the majority, and how they last did."""
    disturbed = [tenant.reason for tenant in spoilt if tenant.disturbed]
    if 2 * len(disturbed) >= len(spoilt):
        return Outcome.DISTURBED, disturbed[-1]
    return Outcome.CLIENT_LIMITED, [each.reason for each in spoilt if not each.disturbed][-1]


def why_uncertified(last: Window, names: Sequence[str]) -> str:
    """Which tenants did not pass in the last window that was to certify a rate."""
    reasons = "; ".join(
        f"{name} at {tenant.offered_rps:.1f}/s: {tenant.reason}"
        for name, tenant in zip(names, last.tenants, strict=True)
        if tenant.verdict is not Verdict.PASS
    )
    return f"no rate passed with confidence ({reasons})"


def why_unbounded(windows: Sequence[Window], names: Sequence[str]) -> str:
    """How far the load went without a limit of the server."""
    highest = max(windows, key=lambda window: window.scale)
    rates = ", ".join(
        f"{name} at {seen.offered_rps:.1f}/s"
        for name, seen in zip(names, highest.tenants, strict=True)
        if seen.offered_rps > 0
    )
    return f"no rate fails that was tested, up to {rates}: the limit lies above them"


def why_unsteady(
    first: Sequence[Speed], last: Sequence[Speed], names: Sequence[str], largest_change: float
) -> str:
    """Which tenants the busy server answered how fast in the first and the last look at it."""
    return "; ".join(
        f"{name}: the busy server answered {before.rate_rps:.3g}/s before the search and"
        f" {after.rate_rps:.3g}/s after it"
        for name, before, after in zip(names, first, last, strict=True)
        if change([before], [after]) > largest_change
    )


def nothing_passed(
    windows: Sequence[Window], base_rps: Sequence[float], names: Sequence[str]
) -> tuple[Outcome, str]:
    """How a search ends that saw no rate pass: by the lowest load that says anything, and which
    tenants did not pass there. What few requests leave undecided is not seen to fail."""
    valid = (window for window in windows if window.verdict is not Verdict.INVALID)
    lowest = min(valid, key=lambda window: window.scale)
    if lowest.verdict is Verdict.FAIL:
        outcome, what = Outcome.INFEASIBLE, "the SLA fails at every rate tested"
    else:
        outcome, what = Outcome.UNCERTIFIED, "no rate passed, and the lowest did not surely fail"
    return outcome, f"{what}: " + "; ".join(
        f"{name}, {'held at' if base > 0 else 'at'} {seen.offered_rps:.1f}/s, answered"
        f" {seen.completed_ratio:.1%} and had its p95 at {seen.p95_ms:.1f} ms ({seen.reason})"
        for name, base, seen in zip(names, base_rps, lowest.tenants, strict=True)
        if seen.verdict is not Verdict.PASS
    )
