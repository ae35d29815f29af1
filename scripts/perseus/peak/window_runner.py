"""Run windows of load on a system, and compute their verdicts (docs/explanation/verdict.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

import numpy as np

from perseus.peak import stats
from perseus.peak.durations import (
    CLUSTERED,
    ENOUGH,
    counted_s,
    effort,
    grace_s,
    seconds_left,
    settle_s,
)
from perseus.peak.line_limit import WIDEST, valid_near
from perseus.peak.line_model import LineModel
from perseus.peak.slowed import UsualSpeed, slowed
from perseus.peak.system import Load, Observation, System
from perseus.peak.verdict import NO_SLA, TenantWindow, Tolerance, Verdict, judge
from perseus.peak.window import Phase, Window, WindowPlan
from perseus.study.presets import SearchSettings


@dataclass
class WindowRunner:
    """Runs the windows of a search, and collects them in `windows`.

    `start` is the load factor at which the search starts. The runner calls `on_window` after each
    window, with an estimate of the remaining seconds. `usual` is the usual speed of the busy
    server, None until the first saturation probe.
    """

    system: System
    model: LineModel
    settings: SearchSettings
    start: float
    on_window: Callable[[Window, float], None]
    usual: UsualSpeed | None = None
    windows: list[Window] = field(default_factory=list)

    @property
    def on_the_line(self) -> list[Window]:
        """Return the windows whose rates lie on the load line."""
        return [window for window in self.windows if window.on_the_line]

    def counted(
        self, phase: Phase, scale: float, rates_rps: tuple[float, ...], tolerance: Tolerance
    ) -> Window:
        """Run a window until its verdict is PASS or FAIL, or until its planned time is over."""
        much = effort(phase, self.settings)
        settle = settle_s(self.settings, self.model.slas)
        longest_s = counted_s(phase, self.settings, self.model.slas, rates_rps)
        if phase is Phase.CERTIFY:
            needs_s = self._clusters_need_s(scale, rates_rps, much.looks)
            if needs_s <= CLUSTERED * much.max_s:  # else even the longest window is too short
                longest_s = max(longest_s, needs_s)
        parts_s = longest_s * np.arange(1, much.looks + 1) / much.looks
        looks_s = settle + grace_s(self.model.slas) + parts_s
        plan = WindowPlan(phase, scale, rates_rps, settle, tuple(looks_s.tolist()), tolerance)
        return self.run(plan, lambda window: window.verdict in (Verdict.PASS, Verdict.FAIL))

    def run(self, plan: WindowPlan, done: Callable[[Window], bool]) -> Window:
        """Run a window until `done` returns true for the window so far, or until its planned time
        is over."""
        with self._offer(plan) as load:
            for look_s in plan.looks_s:
                seen = load.until(look_s)
                by = self._slowed(seen, plan)
                tenants = tuple(self._judge(seen, i, plan, by) for i in range(len(self.model.slas)))
                window = Window(plan.phase, plan.scale, plan.settle_s, look_s, tenants, seen)
                if done(window):
                    break
        self.windows.append(window)
        past = Counter(Phase(each.phase) for each in self.windows)
        somewhere_rps = self.model.line.rates_rps(self._scale_so_far)
        self.on_window(window, seconds_left(past, self.settings, self.model.slas, somewhere_rps))
        return window

    def _offer(self, plan: WindowPlan) -> AbstractContextManager[Load]:
        longest_s = plan.looks_s[-1]
        if plan.in_flight:
            return self.system.offer_closed(plan.in_flight, longest_s)
        return self.system.offer(plan.rates_rps, longest_s)

    @property
    def _scale_so_far(self) -> float:
        return self.on_the_line[-1].scale if self.on_the_line else self.start

    def _slowed(self, seen: Observation, plan: WindowPlan) -> float:
        """Return the temporary slowdown of the server in a window of the phases BRACKET, BISECT and
        NEAR_LIMIT; 1 in a window of another phase.

        In a certification window, a slowdown does not count, because the server must keep the SLA
        at a certified rate even on a slow host.
        """
        looks_for_it = plan.phase in (Phase.BRACKET, Phase.BISECT, Phase.NEAR_LIMIT)
        return slowed(seen, self.usual) if looks_for_it and self.usual is not None else 1.0

    def _clusters_need_s(self, scale: float, rates_rps: Sequence[float], looks: int) -> float:
        """Return the time in seconds for which a window at the load factor `scale` must count
        requests to pass with a few late requests. The function assumes clusters of late requests
        like those in the windows at similar loads."""
        needs_s = [0.0]
        for i, (sla, rate_rps) in enumerate(zip(self.model.slas, rates_rps, strict=True)):
            similar = self._similar(scale, i)
            if rate_rps > 0 and similar:
                weights, windows = zip(*similar, strict=True)
                fewest = stats.fewest_independent(sla.allowed, self._confidence(looks))
                needs_s.append(ENOUGH * fewest * stats.dispersion(windows, weights) / rate_rps)
        return max(needs_s)

    def _similar(self, scale: float, tenant: int) -> list[tuple[float, stats.Exceedances]]:
        """Return the late requests of a tenant in valid windows near the load factor `scale`, each
        with the weight of its window."""
        near = valid_near(self.on_the_line, scale, above=WIDEST)
        weights = stats.similarity(scale, [w.scale for w in near])
        return [(x, w.tenants[tenant].exceedances) for x, w in zip(weights, near, strict=True)]

    def _confidence(self, looks: int) -> float:
        """Return the confidence of each of `looks` verdicts on one window (Bonferroni)."""
        return 1 - (1 - self.settings.confidence) / looks

    def _judge(
        self, seen: Observation, tenant: int, plan: WindowPlan, slowed_by: float
    ) -> TenantWindow:
        rates_rps = plan.rates_rps or [len(each) / seen.elapsed_s for each in seen.requests]
        found = judge(
            seen,
            tenant,
            self.model.slas[tenant],
            rate_rps=rates_rps[tenant],
            settle_s=plan.settle_s,
            grace_s=0.0 if plan.in_flight else grace_s(self.model.slas),
            confidence=self._confidence(len(plan.looks_s)),
            similar=self._similar(plan.scale, tenant),
            slowed=slowed_by,
            tolerance=plan.tolerance,
        )
        if not plan.in_flight or found.verdict is Verdict.INVALID:
            return found
        return replace(found, verdict=Verdict.UNDECIDED, reason=NO_SLA)
