"""Define the result of a search (outcome, reason, peak), and write the texts of the reasons."""

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
"""A search reports a cliff if the latency rises by a factor of more than CLIFF_LEAP while the load
rises by a factor of at most CLIFF_STEP."""


class Outcome(StrEnum):
    """The outcome of a cell (one measurement), as docs/reference/verdicts.md explains it.

    An outcome is a result about the server, a temporary failure, or `blocked`. A cell is blocked if
    its rates depend on a dedicated peak that is unknown.
    """

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
        """Return whether a second measurement on a restarted server may succeed."""
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

    `certified` is the load factor of the certified rate: all certification windows at this load
    factor passed. `certified_window` is the index in `windows` of the last of these certification
    windows, and -1 if no load factor is certified. `first_failing` is the lowest load factor above
    `certified` at which a window failed. `estimate` is the median of the posterior distribution of
    the limit. `posterior` contains draws from this distribution, shape (draws,). `posterior` is
    empty if the windows do not show the limit of the server. The spread of the draws also includes
    the variation of the host's speed between the saturation probes.

    `other_load` describes the largest load of other processes in a window, and is empty if this
    load was small. For each tenant, `speeds_rps` contains the throughput in each saturation probe,
    NaN for a tenant without load. For each tenant, `work_s` contains service times from the
    saturation probes (`peak.speed.work_s`), shape (parts,). `rounds` contains the saturation
    throughputs of each tenant alone and of all tenants together. `model` contains the limits of a
    simulated server with the service times `work_s`. `cliff` describes a steep rise of the latency
    just above the highest load that passes, and is empty without such a rise.
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
    """Return the result of a search that could not start, or that ended without a peak."""
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
    """Return whether a search or a prediction found the limit of the server and its uncertainty.

    The result is false if the client, not the server, limited the load of the search.
    """
    stated = estimate is not None and bool(np.isfinite(estimate)) and len(posterior) > 0
    of_server = (Outcome.OK, Outcome.UNCERTIFIED, Outcome.PREDICTED)
    doubted = (Outcome.UNSTEADY, Outcome.DISTURBED, Outcome.THROTTLED)
    return stated and outcome in (*of_server, *doubted)


def cliff(windows: Sequence[Window], names: Sequence[str]) -> str:
    """Describe a steep rise of the latency just above the highest load that passes (CLIFF_STEP);
    return an empty text if the latency does not rise so steeply."""
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
        f"the latency of {name} at the percentile of its SLA rises from"
        f" {low.sla_percentile_ms:.3g} ms at {low.offered_rps:.4g} requests/s to"
        f" {high.sla_percentile_ms:.3g} ms at {high.offered_rps:.4g} requests/s"
        for name, low, high in zip(names, passing.tenants, above.tenants, strict=True)
        if high.sla_percentile_ms > CLIFF_LEAP * low.sla_percentile_ms
    )


def _other_share(window: Window) -> float:
    share, _ = other_load(window.tenants[0])
    return share


def largest_other_load(windows: Sequence[Window]) -> str:
    """Describe the largest load of other processes in any valid window; return an empty text if
    this load is within the tolerance of an idle host (ON_IDLE_HOST)."""
    valid = [w.tenants[0] for w in windows if w.verdict is not Verdict.INVALID]
    share, used = max(map(other_load, valid), default=(0.0, ""))
    return used if share > ON_IDLE_HOST.other_load else ""


def server_failed_above(windows: Sequence[Window], low: float) -> bool:
    """Return whether at least one valid window above the load factor `low` does not pass
    (`Window.passes_roughly`).

    Only a valid window that does not pass shows that its load is above or near the limit of the
    server. If all valid windows pass, the client may have limited the load.
    """
    return any(
        w.scale > low and w.verdict is not Verdict.INVALID and not w.passes_roughly for w in windows
    )


def why_no_server_limit(windows: Sequence[Window]) -> tuple[Outcome, str] | None:
    """Return an outcome and a reason if invalid windows hide the limit of the server; otherwise
    None.

    The outcome names the main cause of the invalid verdicts at loads without a valid window. If
    other processes caused at least half of these verdicts, the outcome is `disturbed`. Otherwise,
    the outcome is `client_limited`.
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
    """Return an error message if all certification windows are invalid, mostly because of other
    processes; otherwise return an empty text."""
    certifying = [window for window in windows if window.phase == Phase.CERTIFY]
    invalid = [tenant for window in certifying for tenant in window.invalid_tenants]
    if not invalid or any(window.verdict is not Verdict.INVALID for window in certifying):
        return ""
    outcome, reason = _majority_cause(invalid)
    message = f"the limit was estimated, but all certification windows are invalid: {reason}"
    return message if outcome is Outcome.DISTURBED else ""


def _majority_cause(invalid: Sequence[TenantWindow]) -> tuple[Outcome, str]:
    """Return the main cause of the invalid verdicts as an outcome: DISTURBED by other processes, or
    CLIENT_LIMITED. Also return the reason of the last verdict with this cause."""
    disturbed = [tenant.reason for tenant in invalid if tenant.disturbed]
    if 2 * len(disturbed) >= len(invalid):
        return Outcome.DISTURBED, disturbed[-1]
    return Outcome.CLIENT_LIMITED, [each.reason for each in invalid if not each.disturbed][-1]


def why_uncertified(last: Window, names: Sequence[str]) -> str:
    """Return the reason why no rate is certified. The text names each tenant that did not pass in
    the last certification window, with the reason of its verdict."""
    reasons = "; ".join(
        f"for {name} at {tenant.offered_rps:.1f} requests/s, {tenant.reason}"
        for name, tenant in zip(names, last.tenants, strict=True)
        if tenant.verdict is not Verdict.PASS
    )
    return f"no rate was certified (in the last window: {reasons})"


def why_unbounded(windows: Sequence[Window], names: Sequence[str]) -> str:
    """Return the reason why a search without a failed window found no limit. The text states the
    rates of the highest tested load."""
    highest = max(windows, key=lambda window: window.scale)
    rates = ", ".join(
        f"{name} at {seen.offered_rps:.1f} requests/s"
        for name, seen in zip(names, highest.tenants, strict=True)
        if seen.offered_rps > 0
    )
    return f"no tested rate failed, so the limit is above the highest tested load ({rates})"


def why_unsteady(
    first: Sequence[Speed], last: Sequence[Speed], names: Sequence[str], largest_change: float
) -> str:
    """Return a text that names the tenants whose speed changed too much.

    The speed of such a tenant changed by a factor of more than `largest_change` from the first to
    the last saturation probe.
    """
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

    The valid window with the lowest load decides. If this window fails, the outcome is
    `infeasible`. If this window is undecided, the outcome is `uncertified`. The reason names the
    tenants that did not pass in this window.
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
