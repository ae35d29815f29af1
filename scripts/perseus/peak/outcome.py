"""Describe the result of a search: its outcome, the reason for this outcome, and the peak on the
load line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from perseus.peak import stats
from perseus.peak.paired import UNKNOWN_LIMITS, ModelLimits, Round
from perseus.peak.speed import Speed, change
from perseus.peak.verdict import ON_IDLE_HOST, TenantWindow, Verdict, other_load
from perseus.peak.window import Phase, Window

CLIFF_STEP, CLIFF_LEAP = 1.25, 20.0
"""Definition of a cliff: a load increase by a factor of at most CLIFF_STEP multiplies the latency
by a factor of more than CLIFF_LEAP."""


class Outcome(StrEnum):
    """The outcome of a search: a result about the server, a temporary failure, or `blocked`. A
    search is blocked if a dedicated peak that the search needs is unknown."""

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
    def is_temporary(self) -> bool:
        """Return whether a new search on a restarted server may succeed."""
        return self in (
            Outcome.UNSTEADY,
            Outcome.CLIENT_LIMITED,
            Outcome.DISTURBED,
            Outcome.THROTTLED,
            Outcome.FAILED,
        )

    @property
    def is_result(self) -> bool:
        return not self.is_temporary and self is not Outcome.BLOCKED


@dataclass(frozen=True)
class Peak:
    """The result of a search. Each load is stated as a load factor. Unknown values are NaN.

    `certified` is the certified rate as a load factor: all certification windows at this load
    factor passed. `certified_window` is the index in `windows` of the last certification window
    that passed, or -1 without a certified load factor. `first_failing` is the lowest load factor
    above `certified` at which a window fails. `estimate` is the median of the posterior of the
    limit. `posterior` contains draws of the limit, shape (draws,), and is empty if the windows do
    not show the limit of the server. The spread of the draws in `posterior` also covers changes of
    the host's speed.

    `other_load` describes the load of other processes during the search, and is empty if the load
    was small. For each tenant, `speeds_rps` contains the throughput in each saturation probe, NaN
    for a tenant without load. For each tenant, `work_s` contains service times from the saturation
    probes (`peak.speed.work_s`), shape (parts,). `rounds` contains the saturation throughputs of
    each tenant alone and of all tenants together. `model` contains the limits of a simulated server
    with the service times `work_s`. `cliff` describes a steep rise of the latency just above the
    highest load that passes, and is empty without such a rise.
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
    other_load: str
    windows: tuple[Window, ...]


def no_peak(outcome: Outcome, reason: str, windows: Sequence[Window] = ()) -> Peak:
    """Return the result of a search that was impossible or found no peak."""
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
    """Return whether a search or a prediction found two results: the limit of the server, and the
    uncertainty of this limit.

    The result is false if the client, not the server, limited the load of the search.
    """
    stated = estimate is not None and bool(np.isfinite(estimate)) and len(posterior) > 0
    of_server = (Outcome.OK, Outcome.UNCERTIFIED, Outcome.PREDICTED)
    doubted = (Outcome.UNSTEADY, Outcome.DISTURBED, Outcome.THROTTLED)
    return stated and outcome in (*of_server, *doubted)


def cliff(windows: Sequence[Window], names: Sequence[str]) -> str:
    """Return a description of a steep rise of the latency just above the highest load that passes;
    empty without such a rise."""
    valid = [w for w in windows if w.verdict is not Verdict.INVALID]
    passing = max(
        (w for w in valid if w.passes_roughly), key=lambda window: window.scale, default=None
    )
    if passing is None:
        return ""
    steps = [w for w in valid if passing.scale < w.scale <= CLIFF_STEP * passing.scale]
    # A late client or other processes may cause a part of the latency.
    failing = [w for w in steps if w.punctual and _other_share(w) <= ON_IDLE_HOST.other_load]
    if not failing:
        return ""
    above = min(failing, key=lambda window: window.scale)
    return "; ".join(
        f"the latency of {name} leaps from {low.sla_percentile_ms:.3g} ms at"
        f" {low.offered_rps:.4g} requests/s to {high.sla_percentile_ms:.3g} ms at"
        f" {high.offered_rps:.4g} requests/s"
        for name, low, high in zip(names, passing.tenants, above.tenants, strict=True)
        if high.sla_percentile_ms > CLIFF_LEAP * low.sla_percentile_ms
    )


def _other_share(window: Window) -> float:
    share, _ = other_load(window.tenants[0])
    return share


def largest_other_load(windows: Sequence[Window]) -> str:
    """Return a description of the largest load of other processes in any valid window; empty if
    this load was small."""
    valid = [w.tenants[0] for w in windows if w.verdict is not Verdict.INVALID]
    share, used = max(map(other_load, valid), default=(0.0, ""))
    return used if share > ON_IDLE_HOST.other_load else ""


def server_failed_above(windows: Sequence[Window], low: float) -> bool:
    """Return whether at least one valid window above the load factor `low` does not pass
    (`Window.passes_roughly`).

    If a valid window does not pass, the load of this window is above the limit of the server, or
    near this limit. If all valid windows pass, the search may have found only the limit of the
    client.
    """
    return any(
        w.scale > low and w.verdict is not Verdict.INVALID and not w.passes_roughly for w in windows
    )


def why_no_server_limit(windows: Sequence[Window]) -> tuple[Outcome, str] | None:
    """Return an outcome and a reason if no window shows the limit of the server; otherwise None.

    If other processes caused at least half of the invalid verdicts at loads without a valid window,
    the outcome is `disturbed`. Otherwise, the outcome is `client_limited`.
    """
    valid = {w.scale for w in windows if w.verdict is not Verdict.INVALID}
    lost = [w for w in windows if w.scale not in valid]
    invalid = [tenant for window in lost for tenant in window.invalid_tenants]
    passing = max((w.scale for w in windows if w.passes_roughly), default=0.0)
    lowest_is_lost = min(w.scale for w in windows) not in valid
    no_valid_failure = not server_failed_above(windows, passing)
    if invalid and ((passing == 0 and lowest_is_lost) or no_valid_failure):
        return _majority_cause(invalid)
    return None


def why_certification_is_invalid(windows: Sequence[Window]) -> str:
    """If other processes made all certification windows invalid, return a description of this
    failure; otherwise an empty text."""
    certifying = [window for window in windows if window.phase == Phase.CERTIFY]
    invalid = [tenant for window in certifying for tenant in window.invalid_tenants]
    if not invalid or any(window.verdict is not Verdict.INVALID for window in certifying):
        return ""
    outcome, reason = _majority_cause(invalid)
    message = f"there is an estimate, but every certification window is invalid: {reason}"
    return message if outcome is Outcome.DISTURBED else ""


def _majority_cause(invalid: Sequence[TenantWindow]) -> tuple[Outcome, str]:
    """Return the outcome for the main cause of the invalid verdicts (other processes or the
    clients), and the reason of the last verdict with this cause."""
    disturbed = [tenant.reason for tenant in invalid if tenant.disturbed]
    if 2 * len(disturbed) >= len(invalid):
        return Outcome.DISTURBED, disturbed[-1]
    return Outcome.CLIENT_LIMITED, [each.reason for each in invalid if not each.disturbed][-1]


def why_uncertified(last: Window, names: Sequence[str]) -> str:
    """Return a text that names the tenants that did not pass in the last certification window, and
    the reasons."""
    reasons = "; ".join(
        f"{name} at {tenant.offered_rps:.1f}/s: {tenant.reason}"
        for name, tenant in zip(names, last.tenants, strict=True)
        if tenant.verdict is not Verdict.PASS
    )
    return f"no rate was certified ({reasons})"


def why_unbounded(windows: Sequence[Window], names: Sequence[str]) -> str:
    """If the search found no upper bound of the limit, return a text that says so and names the
    rates of the highest tested load."""
    highest = max(windows, key=lambda window: window.scale)
    rates = ", ".join(
        f"{name} at {seen.offered_rps:.1f}/s"
        for name, seen in zip(names, highest.tenants, strict=True)
        if seen.offered_rps > 0
    )
    return f"no tested rate fails: the limit is above the highest tested load ({rates})"


def why_unsteady(
    first: Sequence[Speed], last: Sequence[Speed], names: Sequence[str], largest_change: float
) -> str:
    """Return a text that names the tenants whose throughput differs by more than the factor
    `largest_change` between the first and the last saturation probe."""
    return "; ".join(
        f"{name}: the busy server answered {before.rate_rps:.3g} requests/s before the search and"
        f" {after.rate_rps:.3g} requests/s after it"
        for name, before, after in zip(names, first, last, strict=True)
        if change([before], [after]) > largest_change
    )


def outcome_without_pass(
    windows: Sequence[Window], base_rps: Sequence[float], names: Sequence[str]
) -> tuple[Outcome, str]:
    """Return the outcome of a search in which no rate passed, and the reason for this outcome.

    The reason lists the tenants that did not pass in the valid window with the lowest load. The
    outcome is `infeasible` if the valid window with the lowest load fails, and `uncertified` if
    this window is undecided.
    """
    valid = (window for window in windows if window.verdict is not Verdict.INVALID)
    lowest = min(valid, key=lambda window: window.scale)
    if lowest.verdict is Verdict.FAIL:
        outcome, what = Outcome.INFEASIBLE, "the SLA fails at every rate tested"
    else:
        outcome, what = (
            Outcome.UNCERTIFIED,
            "no rate passed, and the verdict at the lowest tested rate is undecided",
        )
    return outcome, f"{what}: " + "; ".join(
        f"for {name} {'with the background load of' if base > 0 else 'at'}"
        f" {seen.offered_rps:.1f} requests/s, the server answered {seen.completed_ratio:.1%} of"
        f" the requests, with a p95 of {seen.p95_ms:.1f} ms ({seen.reason})"
        for name, base, seen in zip(names, base_rps, lowest.tenants, strict=True)
        if seen.verdict is not Verdict.PASS
    )
