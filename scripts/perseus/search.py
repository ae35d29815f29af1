"""Search for the largest load at which every tenant keeps its SLA (docs/method.md, M8).

The search moves along a load line r(s) = base + s x direction in four phases: bracket the
limit, bisect coarsely, estimate it from fixed windows around the root, and certify a rate in fresh
windows. It knows nothing of Triton: it drives any `System`, real or simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from perseus import stats
from perseus.settings import Effort, Settings
from perseus.window import Observation, Sla, TenantWindow, Verdict, counted, grace_s, judge

GROWTH = 1.5  # of the load while the limit is not bracketed
STEPS = (0.9, 0.75, 0.6)  # of the estimate: rates to certify, until one passes
BATCHES = 4  # of a window, for the bootstrap: long enough to be nearly independent
BOOTSTRAPS = 200
"""Resamples of the batches of a window around the root."""


class Load(Protocol):
    """A window under way."""

    def until(self, elapsed_s: float) -> Observation:
        """Wait until `elapsed_s` after the start of the window; what was seen by then."""


class System(Protocol):
    """A server under load, real or simulated."""

    def offer(self, rates_rps: Sequence[float], duration_s: float) -> AbstractContextManager[Load]:
        """Start a window of open-loop arrivals, a rate per tenant; leaving the context ends it."""


@dataclass(frozen=True)
class LoadLine:
    """Request rates r(s) = base + s x direction in requests/s, one entry per tenant."""

    base_rps: tuple[float, ...]
    direction_rps: tuple[float, ...]

    def rates_rps(self, scale: float) -> tuple[float, ...]:
        pairs = zip(self.base_rps, self.direction_rps, strict=True)
        return tuple(base + scale * step for base, step in pairs)


class Phase(StrEnum):
    BRACKET = "bracket"
    BISECT = "bisect"
    ROOT = "root"
    CONFIRM = "confirm"


class Outcome(StrEnum):
    OK = "ok"
    INFEASIBLE = "infeasible"
    UNCERTIFIED = "uncertified"
    CLIENT_LIMITED = "client_limited"
    FAILED = "failed"


@dataclass(frozen=True)
class Window:
    """A judged window at one point of the load line.

    `counts` has, per tenant, the requests over their SLA and all requests of consecutive batches,
    shape (batches, 2).
    """

    phase: Phase
    scale: float
    settle_s: float
    elapsed_s: float
    tenants: tuple[TenantWindow, ...]
    counts: tuple[NDArray[np.int64], ...]

    @property
    def verdict(self) -> Verdict:
        """The worst of the tenants': every one of them must keep its SLA."""
        found = {tenant.verdict for tenant in self.tenants}
        order = (Verdict.INVALID, Verdict.FAIL, Verdict.UNDECIDED)
        return next((verdict for verdict in order if verdict in found), Verdict.PASS)

    @property
    def passes_roughly(self) -> bool:
        """Good enough to look higher: an undecided window goes by what was observed."""
        if self.verdict is Verdict.UNDECIDED:
            busy = [tenant for tenant in self.tenants if tenant.offered_rps > 0]
            return all(tenant.sla_percentile_ms <= tenant.sla_ms for tenant in busy)
        return self.verdict is Verdict.PASS


@dataclass(frozen=True)
class Peak:
    """What a search found, as scales of the load line; NaN where there is nothing to state.

    `certified` passed all its fresh windows (the last of them is `certified_window`, an index into
    `windows`, else -1), `estimate` is the most likely limit, and `bootstrap` holds estimates from
    a parametric bootstrap of the fit, shape (bootstraps,), empty when there is no estimate.
    """

    outcome: Outcome
    reason: str
    certified: float
    certified_window: int
    estimate: float
    first_failing: float
    bootstrap: stats.Floats
    windows: tuple[Window, ...]


def find_peak(
    system: System,
    line: LoadLine,
    slas: Sequence[Sla],
    settings: Settings,
    *,
    start: float,
    rng: np.random.Generator,
    on_window: Callable[[Window, float], None] = lambda window, seconds_left: None,
) -> Peak:
    """Search along `line` from scale `start`.

    `on_window` is called after each window with a guess of the seconds that the rest will take.
    """
    search = _Search(system, line, tuple(slas), settings, rng, on_window)
    low, high = search.bracket(start)
    if low == 0:
        return search.peak(np.nan, np.empty(0), None)
    low, high = search.bisect(low, high)
    if not search.server_failed_above(low):
        return search.peak(low, np.empty(0), search.certify([low]))
    estimate, bootstrap = search.estimate(low, high)
    return search.peak(estimate, bootstrap, search.certify([estimate * step for step in STEPS]))


def no_peak(outcome: Outcome, reason: str) -> Peak:
    """The result when there was nothing to search."""
    nan = float("nan")
    return Peak(outcome, reason, nan, -1, nan, nan, np.empty(0), ())


@dataclass
class _Search:
    """The inputs of a search and its windows so far; one method per phase."""

    system: System
    line: LoadLine
    slas: tuple[Sla, ...]
    settings: Settings
    rng: np.random.Generator
    on_window: Callable[[Window, float], None]

    def __post_init__(self) -> None:
        self.windows: list[Window] = []

    def bracket(self, start: float) -> tuple[float, float]:
        """Step to (highest scale that passes, lowest that does not); (0, _) if none passes."""
        low, high, scale = 0.0, np.inf, start
        while (low == 0 or np.isinf(high)) and self._may_go_on() and high > start / 20:
            if self._measure(Phase.BRACKET, scale).passes_roughly:
                low, scale = scale, scale * GROWTH
            else:
                high, scale = scale, scale / GROWTH
        return low, high

    def bisect(self, low: float, high: float) -> tuple[float, float]:
        while high / low > self.settings.ratio and self._may_go_on():
            middle = low * 2 if np.isinf(high) else float(np.sqrt(low * high))
            if self._measure(Phase.BISECT, middle).passes_roughly:
                low = middle
            else:
                high = middle
        return low, high

    def estimate(self, low: float, high: float) -> tuple[float, stats.Floats]:
        """The most likely limit, from windows around it in random order, and bootstraps of it.

        Each window is placed by what is known by then, so that a wrong turn of the bisection does
        not spoil the rest.
        """
        scale = float(np.sqrt(low * high))
        spread = np.linspace(-0.07, 0.07, self.settings.root_windows)
        for shift in self.rng.permutation(spread):
            self._measure(Phase.ROOT, scale * (1 + shift))
            scale = float(np.clip(self._limits(scale, 0)[0], scale / 1.3, scale * 1.3))
        limits = self._limits(scale, BOOTSTRAPS)
        return float(limits[0]), limits[1:]

    def _limits(self, near: float, bootstraps: int) -> stats.Floats:
        """The lowest of the tenants' limits, fitted to the windows near a scale; shape (1 + n,).

        Far above the limit a queue never settles, so that its exceedance says little of the load.
        """
        windows = self._near(near, above=1.2)
        if not windows:
            return np.full(1 + bootstraps, near)
        scales = np.array([w.scale for w in windows])
        limits = [
            stats.limit(scales, [w.counts[i] for w in windows], sla.allowed, self.rng, bootstraps)
            for i, sla in enumerate(self.slas)
            if windows[0].tenants[i].offered_rps > 0
        ]
        return np.min(limits, axis=0)

    def _near(self, scale: float, above: float) -> list[Window]:
        """The valid windows at similar loads, at most `above` times the scale."""
        return [
            w
            for w in self.windows
            if w.verdict is not Verdict.INVALID and scale / 1.6 <= w.scale <= scale * above
        ]

    def certify(self, scales: Sequence[float]) -> int | None:
        """The last window of the first scale at which all fresh windows pass."""
        for scale in scales:
            fresh = range(self.settings.confirmations)
            if all(self._measure(Phase.CONFIRM, scale).verdict is Verdict.PASS for _ in fresh):
                return len(self.windows) - 1
        return None

    def peak(self, estimate: float, bootstrap: stats.Floats, certified: int | None) -> Peak:
        scale = np.nan if certified is None else self.windows[certified].scale
        failing = [w.scale for w in self.windows if w.verdict is Verdict.FAIL]
        above = [s for s in failing if certified is None or s > scale]
        outcome, reason = self._outcome(estimate, certified)
        return Peak(
            outcome=outcome,
            reason=reason,
            certified=scale,
            certified_window=-1 if certified is None else certified,
            estimate=estimate,
            first_failing=min(above, default=np.nan),
            bootstrap=bootstrap,
            windows=tuple(self.windows),
        )

    def server_failed_above(self, low: float) -> bool:
        """Whether a valid window above `low` shows the server's limit, not only the client's."""
        return any(
            w.scale > low and w.verdict is not Verdict.INVALID and not w.passes_roughly
            for w in self.windows
        )

    def _outcome(self, estimate: float, certified: int | None) -> tuple[Outcome, str]:
        spoilt = [t.reason for w in self.windows for t in w.tenants if t.verdict == "invalid"]
        passing = max((w.scale for w in self.windows if w.passes_roughly), default=0.0)
        if spoilt and not self.server_failed_above(passing):
            return Outcome.CLIENT_LIMITED, spoilt[-1]
        last = "; ".join(tenant.reason for tenant in self.windows[-1].tenants)
        if np.isnan(estimate):
            return Outcome.INFEASIBLE, f"the SLA fails at every rate tested ({last})"
        if certified is None:
            return Outcome.UNCERTIFIED, f"no rate passed with confidence ({last})"
        return Outcome.OK, ""

    @property
    def _settle_s(self) -> float:
        """A window starts at an empty server; queues reach their steady state in a few SLAs."""
        return max(1.0, self.settings.settle_slas * max(sla.latency_ms for sla in self.slas) / 1000)

    def _may_go_on(self) -> bool:
        return len(self.windows) < self.settings.max_windows

    def _measure(self, phase: Phase, scale: float) -> Window:
        """A window; one that the client spoilt is tried once more."""
        window = self._window(phase, scale)
        return self._window(phase, scale) if window.verdict is Verdict.INVALID else window

    def _window(self, phase: Phase, scale: float) -> Window:
        s = self.settings
        effort = self._effort(phase)
        rates_rps = self.line.rates_rps(scale)
        grace = grace_s(self.slas)
        counted_s = self._counted_s(effort, rates_rps)
        confidence = 1 - (1 - s.confidence) / effort.looks
        near = self._near(scale, above=1.1)
        dispersions = [stats.dispersion([w.counts[i] for w in near]) for i in range(len(self.slas))]
        looks_s = self._settle_s + grace + counted_s * np.arange(1, effort.looks + 1) / effort.looks
        with self.system.offer(rates_rps, float(looks_s[-1])) as load:
            for look_s in looks_s:
                seen = load.until(float(look_s))
                tenants = tuple(
                    judge(
                        seen,
                        tenant,
                        sla,
                        rate_rps=rates_rps[tenant],
                        settle_s=self._settle_s,
                        grace_s=grace,
                        confidence=confidence,
                        dispersion=dispersions[tenant],
                    )
                    for tenant, sla in enumerate(self.slas)
                )
                window = Window(
                    phase, scale, self._settle_s, float(look_s), tenants, self._counts(seen)
                )
                if window.verdict in (Verdict.PASS, Verdict.FAIL):
                    break
        self.windows.append(window)
        self.on_window(window, self._seconds_left(phase, rates_rps))
        return window

    def _counts(self, seen: Observation) -> tuple[NDArray[np.int64], ...]:
        grace = grace_s(self.slas)
        late = [
            counted(seen, tenant, self._settle_s, grace).latency_ms(seen.now_ns) > sla.latency_ms
            for tenant, sla in enumerate(self.slas)
        ]
        return tuple(stats.batch_counts(exceeds, BATCHES) for exceeds in late)

    def _effort(self, phase: Phase) -> Effort:
        s = self.settings
        return {Phase.ROOT: s.root, Phase.CONFIRM: s.confirm}.get(phase, s.coarse)

    @staticmethod
    def _counted_s(effort: Effort, rates_rps: Sequence[float]) -> float:
        slowest_rps = min(rate for rate in rates_rps if rate > 0)
        return min(effort.requests / slowest_rps, effort.max_s)

    def _seconds_left(self, phase: Phase, rates_rps: Sequence[float]) -> float:
        """A guess for the progress line: the usual number of windows of each phase to come."""
        s = self.settings
        done = sum(window.phase is phase for window in self.windows)
        usual = {
            Phase.BRACKET: 2,
            Phase.BISECT: 2,
            Phase.ROOT: s.root_windows,
            Phase.CONFIRM: s.confirmations + 1,
        }
        later = list(usual)[list(usual).index(phase) + 1 :]
        to_come = {phase: max(usual[phase] - done, 0)} | {p: usual[p] for p in later}
        overhead_s = self._settle_s + grace_s(self.slas)
        return sum(
            count * (overhead_s + self._counted_s(self._effort(p), rates_rps))
            for p, count in to_come.items()
        )
