"""Run windows of load on a system, and compute their verdicts (docs/explanation/verdict.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

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
from perseus.peak.verdict import TenantWindow, Tolerance, Verdict, judge, without_sla
from perseus.peak.window import Phase, Window, WindowPlan
from perseus.study.presets import SearchSettings

SIMILAR = 0.05
"""A verdict assumes that late requests form clusters of similar sizes at two loads if the relative
difference of the loads is at most about this value. Near the limit of an M/D/1 queue, a load that
is 5 % higher has clusters about 1.5 times as large."""


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
        """Run a window until its verdict is PASS or FAIL, or until its planned time is over.

        If a certification window has too few independent requests after its planned time, the
        window goes on until it has enough requests, but for at most CLUSTERED times the longest
        time of the preset. Then only the verdict at the end of the window counts. If earlier
        verdicts in the additional time also counted, more windows at the limit would pass than the
        confidence of the preset allows.
        """
        much = effort(phase, self.settings)
        settle = settle_s(self.settings, self.model.slas)
        before_s = settle + grace_s(self.model.slas)
        planned_s = counted_s(phase, self.settings, self.model.slas, rates_rps)
        longest_s = CLUSTERED * much.max_s if phase is Phase.CERTIFY else planned_s
        count = max(much.looks, int(much.looks * longest_s / planned_s))
        looks_s = tuple(float(before_s + planned_s * i / much.looks) for i in range(1, count + 1))
        plan = WindowPlan(phase, scale, rates_rps, settle, looks_s, tolerance)

        def done(window: Window) -> bool:
            if window.elapsed_s >= looks_s[much.looks - 1]:
                return not self._needs_more_requests(window)
            return window.verdict in (Verdict.PASS, Verdict.FAIL)

        return self.run(plan, done)

    def run(self, plan: WindowPlan, done: Callable[[Window], bool]) -> Window:
        """Run a window until its planned time is over, or until `done` returns true for the part
        that has already passed."""
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
        """Return the temporary slowdown of the server in a window. The result is 1 for a window
        outside the phases BRACKET, BISECT and NEAR_LIMIT.

        In a certification window, a slowdown does not count, because the server must keep the SLA
        at a certified rate even on a slow host.
        """
        looks_for_it = plan.phase in (Phase.BRACKET, Phase.BISECT, Phase.NEAR_LIMIT)
        return slowed(seen, self.usual) if looks_for_it and self.usual is not None else 1.0

    def _needs_more_requests(self, window: Window) -> bool:
        """Return whether two conditions hold: the observed percentile of each tenant is within its
        SLA, but at least one tenant has too few independent requests for a verdict."""
        confidence = self._confidence(window.phase)
        return window.passes_roughly and any(
            tenant.effective_requests < ENOUGH * stats.fewest_independent(sla.allowed, confidence)
            for tenant, sla in zip(window.tenants, self.model.slas, strict=True)
            if tenant.offered_rps > 0
        )

    def _similar(self, scale: float, tenant: int) -> list[tuple[float, stats.Exceedances]]:
        """Return the late requests of a tenant in valid windows near the load factor `scale`, each
        with the weight of its window."""
        near = valid_near(self.on_the_line, scale, above=WIDEST)
        weights = stats.similarity(scale, [w.scale for w in near], SIMILAR)
        return [(x, w.tenants[tenant].exceedances) for x, w in zip(weights, near, strict=True)]

    def _confidence(self, phase: str) -> float:
        """Return the confidence of each verdict on a window. The planned verdicts share the allowed
        error probability equally (Bonferroni)."""
        return 1 - (1 - self.settings.confidence) / effort(Phase(phase), self.settings).looks

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
            confidence=self._confidence(plan.phase),
            similar=self._similar(plan.scale, tenant),
            slowed=slowed_by,
            tolerance=plan.tolerance,
        )
        return without_sla(found) if plan.in_flight else found
