"""Search for the largest load at which every tenant keeps its SLA (docs/method.md, "Search").

The search moves along a load line r(s) = base + s x direction: warm the server up, bracket the
limit, bisect coarsely, estimate it from windows around the root, certify a rate in fresh windows,
see that the server is as fast as in the beginning, and at last load each tenant alone. It knows
nothing of Triton: it drives any `System`, real or simulated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from perseus.peak import stats
from perseus.peak.durations import (
    ATTEMPTS,
    CERTIFY_AT,
    STEADY_S,
    counted_s,
    effort,
    grace_s,
    seconds_left,
    settle_s,
)
from perseus.peak.line_limit import WIDEST, line_limit, valid_near
from perseus.peak.line_model import LineModel
from perseus.peak.load_line import LoadLine
from perseus.peak.outcome import (
    Outcome,
    Peak,
    cliff,
    no_peak,
    server_failed_above,
    what_spoilt,
    why_infeasible,
    why_uncertified,
)
from perseus.peak.steadiness import IDLE, Steadiness, steadiness
from perseus.peak.system import Observation, System
from perseus.peak.tenant_limit import Draws, Limit
from perseus.peak.verdict import TenantWindow, Verdict, counted, judge
from perseus.peak.virtual_queue import VirtualQueue
from perseus.peak.window import Phase, Window, WindowPlan
from perseus.study.presets import SearchSettings
from perseus.study.sla import Sla

GROWTH = 1.5  # of the load while the limit is not bracketed
DRAWS = 200
"""Draws of the posterior of a limit that are kept, for intervals of what is made from it."""

NARROW = 0.35
"""Width of an interval of the limit, as a share of it, that asks for no more windows around it."""

LIGHT = 0.5  # of the load that the search begins at, to warm up and to see a drift
LOOKS_S = 1.0  # between looks whether the server is steady
SHORTEST_S = {Phase.WARM_UP: 6.0, Phase.STEADY: 2.0}
"""Windows before that say nothing: a drift of a few percent per second would not show."""
FEWEST = 60  # requests of each tenant before that can be told
DRIFT = 0.15
"""Change of a light load's latency, from before to after a search, that spoils it."""


def find_peak(
    system: System,
    line: LoadLine,
    slas: Sequence[Sla],
    settings: SearchSettings,
    *,
    start: float,
    unloaded_ms: Sequence[stats.Floats],
    names: Sequence[str],
    rng: np.random.Generator,
    batching: bool = False,
    on_window: Callable[[Window, float], None] = lambda window, seconds_left: None,
) -> Peak:
    """Search along `line` from scale `start`; one entry per tenant in `slas` and `names`.

    `unloaded_ms` holds latencies of each tenant without load, shape (any number,). `batching` says
    that the server joins requests, so that its limit is estimated with less trust. `on_window` is
    called after each window with a guess of the seconds that the rest will take.
    """
    queue = VirtualQueue.of(unloaded_ms, [sla.latency_ms for sla in slas], batching)
    model = LineModel(line, tuple(slas), system.arrivals, queue)
    search = _Search(system, model, settings, tuple(names), rng, on_window)
    light_rps = tuple(LIGHT * rate for rate in line.rates_rps(start))
    before, problem = search.warm_up(light_rps)
    if problem:
        return search.ended(Outcome.UNSTEADY, problem)
    low, high = search.bracket(start)
    if low == 0:
        return search.peak(np.nan, np.empty(0), None)
    low, high = search.bisect(low, high)
    if server_failed_above(search.on_the_line, low):
        near, _ = search.estimate(search.near_root(low, high))
        certified = search.certify([near * share for share in CERTIFY_AT])
        estimate, posterior = search.estimate(near)
    else:
        estimate, posterior, certified = low, np.empty(0), search.certify([low])
    if problem := search.drifted(before, light_rps):
        return search.ended(Outcome.UNSTEADY, problem)
    search.alone(estimate * CERTIFY_AT[0] if certified is None else search.windows[certified].scale)
    return search.peak(estimate, posterior, certified)


@dataclass
class _Search:
    """The inputs of a search and its windows so far; one method per phase."""

    system: System
    model: LineModel
    settings: SearchSettings
    names: tuple[str, ...]
    rng: np.random.Generator
    on_window: Callable[[Window, float], None]

    def __post_init__(self) -> None:
        self.windows: list[Window] = []

    # Phases, in their order

    def steady(
        self, phase: Phase, rates_rps: Sequence[float], longest_s: float
    ) -> tuple[Steadiness, ...]:
        """Offer a light load until latencies are surely steady, or for so long.

        One entry per tenant.
        """
        busy_rps = [rate for rate in rates_rps if rate > 0]
        longest_s = max(longest_s, 1.5 * FEWEST / min(busy_rps))
        first_s = max(SHORTEST_S[phase], FEWEST / min(busy_rps)) + grace_s(self.slas)
        looks_s = np.append(np.arange(first_s, longest_s, LOOKS_S), longest_s)
        plan = WindowPlan(phase, np.nan, tuple(rates_rps), 0.0, tuple(looks_s.tolist()))

        def done(window: Window) -> bool:
            return all(found.surely_steady for found in self._steadiness(window))

        return self._steadiness(self._window(plan, done))

    def warm_up(self, rates_rps: Sequence[float]) -> tuple[tuple[Steadiness, ...], str]:
        """How the server runs under a light load, and which tenants do not become steady.

        When one does not, a second window says whether that was a passing disturbance.
        """
        first = self.steady(Phase.WARM_UP, rates_rps, self.settings.warm_up_s)
        if all(found.steady for found in first):
            return first, ""
        second = self.steady(Phase.WARM_UP, rates_rps, self.settings.warm_up_s)
        problem = "; ".join(
            f"{name}: a light load does not become steady: its lower quartile went from"
            f" {old.first.value_ms:.2f} to {new.last.value_ms:.2f} ms"
            for name, old, new in zip(self.names, first, second, strict=True)
            if not new.settled_after(old)
        )
        return second, problem

    def drifted(self, before: Sequence[Steadiness], rates_rps: Sequence[float]) -> str:
        """Whether the server is slower or faster than before the search; seen twice, to be sure."""
        for _ in range(2):
            after = self.steady(Phase.STEADY, rates_rps, STEADY_S)
            problem = "; ".join(
                f"{name}: the lower quartile of a light load was {old.whole.value_ms:.1f} ms"
                f" before the search and {new.whole.value_ms:.1f} ms after it"
                for name, old, new in zip(self.names, before, after, strict=True)
                if old.whole.differs(new.whole, DRIFT)
            )
            if not problem:
                return ""
        return problem

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

    def near_root(self, low: float, high: float) -> float:
        """A scale near the limit, from windows around it in random order.

        Each window is placed by what is known by then, so that a wrong turn of the bisection does
        not spoil the rest. A third of them does where they show the work of each request, and the
        interval is narrow.
        """
        scale, most = float(np.sqrt(low * high)), self.settings.root_windows
        for i, shift in enumerate(self.rng.permutation(np.linspace(-0.07, 0.07, most))):
            self._measure(Phase.ROOT, scale * (1 + shift))
            enough = 3 * (i + 1) >= most
            found = self._limit(scale, DRAWS if enough else 0)
            scale = float(np.clip(found.scales[0], scale / 1.3, scale * 1.3))
            if enough and found.observed and found.width < NARROW:
                break
        return scale

    def estimate(self, near: float) -> tuple[float, stats.Floats]:
        """The limit by all that was seen near a scale, and draws around it."""
        scales = self._limit(near, DRAWS).scales
        return float(scales[0]), scales[1:]

    def certify(self, scales: Sequence[float]) -> int | None:
        """The last window of the first scale at which all fresh windows pass."""
        for scale in scales:
            fresh = range(self.settings.confirmations)
            if all(self._measure(Phase.CONFIRM, scale).verdict is Verdict.PASS for _ in fresh):
                return len(self.windows) - 1
        return None

    def alone(self, scale: float) -> None:
        """Each tenant at its rate of this scale without the others, to compare."""
        rates_rps = self.model.line.rates_rps(scale)
        busy = [i for i, rate in enumerate(rates_rps) if rate > 0]
        for i in busy if len(busy) > 1 else ():
            only = tuple(rate if j == i else 0.0 for j, rate in enumerate(rates_rps))
            self._counted_window(Phase.ALONE, np.nan, only)

    # Results

    def ended(self, outcome: Outcome, reason: str) -> Peak:
        return no_peak(outcome, reason, self.windows)

    def peak(self, estimate: float, posterior: stats.Floats, certified: int | None) -> Peak:
        scale = np.nan if certified is None else self.windows[certified].scale
        failing = [w.scale for w in self.on_the_line if w.verdict is Verdict.FAIL]
        above = [s for s in failing if certified is None or s > scale]
        outcome, reason = self._outcome(estimate, certified)
        return Peak(
            outcome=outcome,
            reason=reason,
            certified=scale,
            certified_window=-1 if certified is None else certified,
            estimate=estimate,
            first_failing=min(above, default=np.nan),
            posterior=posterior,
            cliff=cliff(self.on_the_line, self.names),
            windows=tuple(self.windows),
        )

    def _outcome(self, estimate: float, certified: int | None) -> tuple[Outcome, str]:
        windows = self.on_the_line
        if spoilt := what_spoilt(windows):
            return spoilt
        if np.isnan(estimate):
            lowest = min(windows, key=lambda window: window.scale)
            return Outcome.INFEASIBLE, why_infeasible(lowest, self.model.line.base_rps, self.names)
        if certified is None:
            return Outcome.UNCERTIFIED, why_uncertified(windows[-1], self.names)
        return Outcome.OK, ""

    # Windows

    @property
    def slas(self) -> tuple[Sla, ...]:
        return self.model.slas

    @property
    def on_the_line(self) -> list[Window]:
        return [window for window in self.windows if window.on_the_line]

    def _limit(self, near: float, draws: int) -> Limit:
        return line_limit(self.model, self.on_the_line, near, Draws(draws, self.rng))

    def _may_go_on(self) -> bool:
        return len(self.on_the_line) < self.settings.max_windows

    def _measure(self, phase: Phase, scale: float) -> Window:
        """A window; one that the client or the host spoilt is tried again: it says nothing."""
        for _ in range(ATTEMPTS):
            window = self._counted_window(phase, scale, self.model.line.rates_rps(scale))
            if window.verdict is not Verdict.INVALID:
                break
        return window

    def _counted_window(self, phase: Phase, scale: float, rates_rps: tuple[float, ...]) -> Window:
        """A window that lasts until its verdict is clear, or as long as its effort says."""
        much = effort(phase, self.settings)
        settle = settle_s(self.settings, self.slas)
        parts_s = counted_s(much, rates_rps) * np.arange(1, much.looks + 1) / much.looks
        looks_s = settle + grace_s(self.slas) + parts_s
        plan = WindowPlan(phase, scale, rates_rps, settle, tuple(looks_s.tolist()))
        return self._window(plan, lambda window: window.verdict in (Verdict.PASS, Verdict.FAIL))

    def _window(self, plan: WindowPlan, done: Callable[[Window], bool]) -> Window:
        """A window that lasts until it is done, or as planned."""
        with self.system.offer(plan.rates_rps, plan.looks_s[-1]) as load:
            for look_s in plan.looks_s:
                seen = load.until(look_s)
                tenants = tuple(self._judge(seen, i, plan) for i in range(len(self.slas)))
                window = Window(plan.phase, plan.scale, plan.settle_s, look_s, tenants, seen)
                if done(window):
                    break
        self.windows.append(window)
        past = Counter(Phase(each.phase) for each in self.windows)
        left_s = seconds_left(past, plan.phase, self.settings, self.slas, plan.rates_rps)
        self.on_window(window, left_s)
        return window

    def _judge(self, seen: Observation, tenant: int, plan: WindowPlan) -> TenantWindow:
        near = valid_near(self.on_the_line, plan.scale, above=WIDEST)
        weights = stats.similarity(plan.scale, [w.scale for w in near])
        return judge(
            seen,
            tenant,
            self.slas[tenant],
            rate_rps=plan.rates_rps[tenant],
            settle_s=plan.settle_s,
            grace_s=grace_s(self.slas),
            confidence=1 - (1 - self.settings.confidence) / len(plan.looks_s),
            similar=[
                (weight, w.tenants[tenant].exceedances)
                for weight, w in zip(weights, near, strict=True)
            ],
        )

    def _steadiness(self, window: Window) -> tuple[Steadiness, ...]:
        found = []
        for i, sla in enumerate(self.slas):
            part = counted(window.seen, i, 0.0, grace_s(self.slas))
            latency_ms = np.minimum(part.latency_ms(window.seen.now_ns), 10 * sla.latency_ms)
            idle = window.tenants[i].offered_rps == 0
            found.append(IDLE if idle else steadiness(latency_ms))
        return tuple(found)
