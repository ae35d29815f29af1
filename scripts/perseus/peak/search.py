"""Search for the largest load at which every tenant keeps its SLA (docs/explanation/search.md).

The rates of all tenants lie on a load line r(s) = base + s x direction, and the search varies only
the load factor s. First, the search warms the server up. Then the search finds one load that passes
and one that fails, narrows the range between them by bisection, and estimates the limit from
windows near the limit. Finally, the search certifies a rate in new windows, and measures each
tenant alone at its share of the certified rate. Between these phases, saturation probes measure the
speed of the busy server. The search does not depend on Triton: it measures any `System`, real or
simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perseus.peak import speed, stats
from perseus.peak.durations import (
    ATTEMPTS,
    CERTIFY_AT,
    LONGEST_COUNTED_S,
    MAX_NEAR_LIMIT_FACTOR,
    counted_s,
)
from perseus.peak.line_limit import line_limit
from perseus.peak.line_model import LineModel
from perseus.peak.load_line import LoadLine
from perseus.peak.outcome import (
    Outcome,
    Peak,
    cliff,
    largest_other_load,
    no_peak,
    outcome_without_pass,
    server_failed_above,
    why_certification_is_invalid,
    why_no_server_limit,
    why_unbounded,
    why_uncertified,
    why_unsteady,
)
from perseus.peak.paired import ModelLimits, Round, ratio_at_saturation
from perseus.peak.queue_limit import Precision
from perseus.peak.shared_model import FINE, ROUGH, TenantWork, model_limits
from perseus.peak.slowed import UsualSpeed
from perseus.peak.speed import IN_FLIGHT, NO_SPEED, Speed
from perseus.peak.stats import NORMAL_ENDS
from perseus.peak.steadiness import Steadiness, of_each_tenant
from perseus.peak.system import System
from perseus.peak.tenant_limit import Draws, Limit
from perseus.peak.verdict import ON_BUSY_HOST, ON_IDLE_HOST, Verdict
from perseus.peak.virtual_queue import VirtualQueue
from perseus.peak.window import Phase, Window, WindowPlan
from perseus.peak.window_runner import WindowRunner
from perseus.study.presets import SearchSettings
from perseus.study.sla import Sla

GROWTH = 1.5  # factor between two successive loads of the bracketing phase
BELOW_MODEL, MODEL_STEP = 0.92, 1.22
"""A search on a shared server starts at BELOW_MODEL times the limit of a simulated queue with the
observed service times. In such a search, MODEL_STEP is the factor between the first two loads of
the bracketing phase."""
MODEL_ERROR = 0.05
"""Assumed standard deviation of log(limit of the simulated queue / limit of the server)."""
LEAP = 4.0
"""Factor between two successive loads of the bracketing phase that are below 1/20 of the start load
or above 20 times the start load."""
DRAWS = 200
"""Number of posterior draws of the limit in the result of a search. From these draws, Perseus
computes the intervals of sharing ratios and costs."""

NARROW = 0.35
"""The search measures no more windows near the limit if the 95 % interval of the limit is narrow:
its width, divided by the median, is below this value."""

AGREEING = 0.6
"""The search compares the 95 % interval of the limit with the limit of the simulated queue only if
the width of the interval, divided by the median, is at most this value. A wider interval contains
almost any value, so the comparison would prove nothing."""

ROUNDS_PART = 0.3
"""On a shared server, the search measures the sharing ratio at saturation in rounds. The rounds end
as soon as the interval of the sharing ratio is narrow: the half-width of the interval is below this
share of the half-width that the preset requires."""

LOOKS_S = 1.0  # seconds between two checks of the steady state during the warm-up
SHORTEST_WARM_UP_S = 6.0
"""Shortest warm-up in seconds. A shorter warm-up would not show that the latency changes by a few
percent per second."""
LARGEST_CHANGE = 1.5
"""Largest factor by which each of two values may change: the latency during the warm-up, and the
speed of the busy server from the first to the last saturation probe. After a larger change, the
outcome of the search is `unsteady`."""


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
    on_window: Callable[[Window, float], None] = lambda window, seconds_left: None,
) -> Peak:
    """Search for the peak along a load line, and return the result.

    If only one tenant has load, the first window on the load line has the load factor `start`. If
    several tenants have load, the load of the first window is just below the limit of a simulated
    queue. If this limit is unknown or far below `start`, the first window also has the load factor
    `start`. `unloaded_ms` contains, for each tenant, an array of latencies without load. After each
    window, the function calls `on_window` with the window and the estimated remaining seconds.
    """
    queue = VirtualQueue.of(unloaded_ms, [sla.latency_ms for sla in slas])
    model = LineModel(line, tuple(slas), system.arrivals, queue)
    search = _Search(system, model, settings, tuple(names), start, unloaded_ms, rng, on_window)
    if problem := search.warm_up():
        return no_peak(Outcome.UNSTEADY, problem, search.windows)
    search.probe_saturation()
    search.start_near_model()
    low, high = search.bracket()
    if low == 0:
        return search.peak(np.nan, np.empty(0), None)
    low, high = search.bisect(low, high)
    search.probe_saturation()
    if server_failed_above(search.on_the_line, low):
        near, posterior = search.estimate(search.near_limit_windows(low, high))
        likely = search.with_model(near, posterior)
        certified = search.certify([likely * share for share in CERTIFY_AT])
        estimate, posterior = search.estimate(near)
    else:
        estimate, posterior, certified = low, np.empty(0), search.certify([low])
    search.probe_saturation()
    if search.speed_change > LARGEST_CHANGE:  # a second probe must confirm the change
        search.probe_saturation()
    search.alone(estimate * CERTIFY_AT[0] if certified is None else search.windows[certified].scale)
    return search.peak(estimate, posterior, certified)


@dataclass
class _Search:
    """The state of a search, with one method per phase."""

    system: System
    model: LineModel
    settings: SearchSettings
    names: tuple[str, ...]
    start: float
    unloaded_ms: Sequence[stats.Floats]
    rng: np.random.Generator
    on_window: Callable[[Window, float], None]

    def __post_init__(self) -> None:
        self.runner = WindowRunner(
            self.system, self.model, self.settings, self.start, self.on_window
        )
        self.speeds: list[tuple[Speed, ...]] = []
        self.rounds: list[Round] = []
        self.growth = GROWTH
        self.tolerance = ON_IDLE_HOST
        self.host_stays_busy = False

    # Phases of the search, in their order

    def warm_up(self) -> str:
        """Load the server until its latency is steady. Return an error message if the latency does
        not become steady, otherwise an empty text.

        In the warm-up, all tenants with load have requests in a closed loop. If the latency is not
        steady at the end of the first window, a second window follows. The warm-up fails under two
        conditions: the latency still changes in the second window, and has changed by a factor of
        more than LARGEST_CHANGE since the start of the first window.
        """
        first = self._closed_until_steady()
        if all(found.steady for found in first):
            return ""
        second = self._closed_until_steady()
        return "; ".join(
            f"the latency of {name} does not become steady under load (its lower quartile changed"
            f" from {old.first.value_ms:.2f} to {new.last.value_ms:.2f} ms)"
            for name, old, new in zip(self.names, first, second, strict=True)
            if new.still_changes_since(old, LARGEST_CHANGE)
        )

    def probe_saturation(self) -> None:
        """Measure the saturation throughput of each tenant alone.

        If several tenants have load, the function runs rounds of short windows (`_round`), which
        also measure the saturation throughputs of all tenants together.
        """
        if len(self.loaded) > 1:
            looks = tuple(map(speed.combined, zip(*self._rounds_of_turns(), strict=True)))
        else:
            (only,) = self.loaded
            looks = self._at_saturation([only], speed.duration_s(self.unloaded_ms[only]))
        self.speeds.append(looks)
        warm_up = next(w for w in reversed(self.windows) if w.phase is Phase.WARM_UP)
        self.runner.usual = UsualSpeed.of(self.speeds, warm_up.seen)

    def _rounds_of_turns(self) -> list[tuple[Speed, ...]]:
        """Run rounds until the sharing ratio is precise enough (ROUNDS_PART), but no more rounds
        than the preset allows. Return the results of `_round`."""
        seen = [self._round()]
        while len(seen) < self.settings.rounds:
            error = ratio_at_saturation(self.rounds).error
            if NORMAL_ENDS * error < self.settings.ratio_within * ROUNDS_PART:
                break
            seen.append(self._round())
        return seen

    def _round(self) -> tuple[Speed, ...]:
        """Run one round: saturate the server with each tenant alone in turn and, in the middle of
        the round, with all tenants together. Return, for each tenant, the speed of the server while
        only this tenant has load."""
        counted_s = speed.round_window_s([self.unloaded_ms[i] for i in self.loaded])
        order: list[int | None] = [*self.loaded]
        order.insert(len(order) // 2, None)  # None stands for all tenants together
        if len(self.rounds) % 2:
            order.reverse()
        alone = [NO_SPEED] * len(self.slas)
        together = alone
        for i in order:
            if i is None:
                together = list(self._at_saturation(self.loaded, counted_s))
            else:
                alone[i] = self._at_saturation([i], counted_s)[i]
        self.rounds.append(
            Round(tuple(map(speed.mean_rps, alone)), tuple(map(speed.mean_rps, together)))
        )
        return tuple(alone)

    def _at_saturation(self, tenants: Sequence[int], counted_s: float) -> tuple[Speed, ...]:
        """Run a saturation probe: keep IN_FLIGHT requests of each of `tenants` in flight for
        `counted_s` seconds after a settling time. Return the speed of the server for each
        tenant."""
        in_flight = tuple(IN_FLIGHT if i in tenants else 0 for i in range(len(self.slas)))
        settle_s = counted_s / 5
        plan = WindowPlan(
            Phase.PROBE, np.nan, (), settle_s, (settle_s + counted_s,), self.tolerance, in_flight
        )
        window = self.runner.run(plan, lambda window: True)
        settled_ns = window.seen.start_ns + round(settle_s * 1e9)
        return tuple(
            speed.speed(window.seen.requests[i], settled_ns) if i in tenants else NO_SPEED
            for i in range(len(self.slas))
        )

    def start_near_model(self) -> None:
        """On a shared server, set the start load of the search just below the limit of a simulated
        queue with the observed service times."""
        scale = self.shared_model_scale
        # If background load nearly fills the server, the limit of the queue is near 0 and useless.
        if scale > self.start / GROWTH**4:
            self.start, self.growth = scale * BELOW_MODEL, MODEL_STEP

    @property
    def shared_model_scale(self) -> float:
        """Return the limit of the simulated queue as a load factor; NaN if only one tenant has
        load."""
        return self.model_limits(ROUGH).scale if len(self.loaded) > 1 else np.nan

    def model_limits(self, precision: Precision) -> ModelLimits:
        """Return the limits of a simulated server with the service times from the saturation
        probes."""
        works = []
        for sla, alone_ms, seen in zip(
            self.slas, self.unloaded_ms, zip(*self.speeds, strict=True), strict=True
        ):
            work_s = speed.work_s(seen)
            usual_s = float(np.median(work_s)) if len(work_s) else 0.0
            away_s = max(0.0, float(np.median(alone_ms)) / 1000 - usual_s)
            works.append(TenantWork(sla, work_s, away_s))
        return model_limits(self.model, works, self.rounds, precision)

    def with_model(self, near: float, posterior: stats.Floats) -> float:
        """Return the limit from which the search computes the rates to certify.

        The result is a geometric mean, weighted by precision, of two limits: the limit `near` from
        the windows, and the limit of the simulated queue. `posterior` contains draws of the limit
        `near`. If the two limits differ by more than two standard deviations of their difference,
        the excess over two standard deviations counts as an additional error of the simulated
        queue. If the limit of the simulated queue is unknown, or if `posterior` is empty, the
        result is `near`.
        """
        scale = self.shared_model_scale
        if not (np.isfinite(scale) and len(posterior)):
            return near
        by_windows, by_model = np.var(np.log(posterior)), MODEL_ERROR**2
        excess = max(0.0, abs(np.log(near / scale)) - 2 * np.sqrt(by_windows + by_model))
        part = by_windows / (by_windows + by_model + excess**2)
        return float(np.exp((1 - part) * np.log(near) + part * np.log(scale)))

    @property
    def speed_change(self) -> float:
        """Return the factor, at least 1, by which the speed of the busy server rose or fell from
        the first to the last saturation probe."""
        return speed.change(self.speeds[0], self.speeds[-1]) if self.speeds else 1.0

    def bracket(self) -> tuple[float, float]:
        """Raise or lower the load until one load passes and another fails. Return the highest load
        factor that passes (0 if none passes), and the lowest load factor that fails (infinity if
        none fails)."""
        low, high, scale, growth = 0.0, np.inf, self.start, self.growth
        while (low == 0 or np.isinf(high)) and self._may_go_on() and self._may_pass(scale):
            if self._measure(Phase.BRACKET, scale).passes_roughly:
                low, scale = scale, scale * (growth if scale < 20 * self.start else LEAP)
            else:
                high, scale = scale, scale / (growth if scale > self.start / 20 else LEAP)
            growth = GROWTH
        return low, high

    def _may_pass(self, scale: float) -> bool:
        """Return whether bracketing may measure at the load factor `scale`.

        Bracketing stops at very low loads, because a window could hardly pass. Above one thirtieth
        of the start load, the result is true. At lower loads, the result is true only if no tenant
        has background load, and the counted part of a window is shorter than LONGEST_COUNTED_S
        seconds.
        """
        rates_rps = self.model.line.rates_rps(scale)
        lasts_s = counted_s(Phase.BRACKET, self.settings, self.slas, rates_rps)
        enough = lasts_s < LONGEST_COUNTED_S
        return scale > self.start / 30 or (enough and not any(self.model.line.base_rps))

    def bisect(self, low: float, high: float) -> tuple[float, float]:
        while high / low > self.settings.ratio and self._may_go_on():
            middle = low * 2 if np.isinf(high) else float(np.sqrt(low * high))
            if self._measure(Phase.BISECT, middle).passes_roughly:
                low = middle
            else:
                high = middle
        return low, high

    def near_limit_windows(self, low: float, high: float) -> float:
        """Measure windows near the limit, and return the last estimate of the limit as a load
        factor. After the bisection, the limit is probably between `low` and `high`.

        The loads of the windows are spread around the limit by up to 7 %, in random order. After
        each window, the search estimates the limit anew, which corrects errors of the bisection.
        The search stops after the usual number of windows if the interval of the limit is narrow
        (NARROW). Otherwise, the search continues up to MAX_NEAR_LIMIT_FACTOR times the usual number
        of windows. After one third of the usual number, the search can stop in two cases:

        - The interval is narrow, and the windows show the service time of each request.
        - The interval contains the limit of the simulated queue, and is narrow enough for this
          comparison (AGREEING).
        """
        by_model = self.shared_model_scale
        scale, usual = float(np.sqrt(low * high)), self.settings.near_limit_windows
        shifts = self.rng.permutation(np.linspace(-0.07, 0.07, usual))
        for i in range(MAX_NEAR_LIMIT_FACTOR * usual):
            self._measure(Phase.NEAR_LIMIT, scale * (1 + shifts[i % usual]))
            enough = 3 * (i + 1) >= usual
            found = self._limit(scale, DRAWS if enough else 0)
            scale = float(np.clip(found.scales[0], scale / 1.3, scale * 1.3))
            if enough and found.agrees_with(by_model, AGREEING):
                break
            if enough and (found.observed or i + 1 >= usual) and found.width < NARROW:
                break
            if self.host_stays_busy:
                break
        return scale

    def estimate(self, near: float) -> tuple[float, stats.Floats]:
        """Estimate the limit from all windows near the load factor `near`. Return the estimate, and
        posterior draws of the limit, shape (DRAWS,)."""
        scales = self._limit(near, DRAWS).scales
        return float(scales[0]), scales[1:]

    def certify(self, scales: Sequence[float]) -> int | None:
        """Try to certify the load factors `scales` in order: a load factor is certified if all new
        windows at this load factor pass.

        Return the index in `windows` of the last window at the certified load factor; None if no
        load factor is certified.
        """
        for scale in scales:
            fresh = range(self.settings.certify_windows)
            if all(self._measure(Phase.CERTIFY, scale).verdict is Verdict.PASS for _ in fresh):
                return len(self.windows) - 1
            if self.host_stays_busy:
                break
        return None

    def alone(self, scale: float) -> None:
        """Run one window for each tenant alone, at the rate that this tenant has at the load factor
        `scale`. If only one tenant has load, run no window."""
        rates_rps = self.model.line.rates_rps(scale)
        busy = [i for i, rate in enumerate(rates_rps) if rate > 0]
        for i in busy if len(busy) > 1 else ():
            only = tuple(rate if j == i else 0.0 for j, rate in enumerate(rates_rps))
            self.runner.counted(Phase.ALONE, np.nan, only, self.tolerance)

    # Results

    def peak(self, estimate: float, posterior: stats.Floats, certified: int | None) -> Peak:
        scale = np.nan if certified is None else self.windows[certified].scale
        failing = [w.scale for w in self.on_the_line if w.verdict is Verdict.FAIL]
        above = [s for s in failing if certified is None or s > scale]
        if invalid := why_no_server_limit(self.on_the_line):
            posterior = np.empty(0)  # the windows show only a limit of the client
        is_bounded = len(posterior) > 0
        outcome, reason = invalid or self._outcome(estimate, certified, is_bounded=is_bounded)
        factors = np.exp(speed.wander(self.speeds) * self.rng.standard_normal(len(posterior)))
        return Peak(
            outcome=outcome,
            reason=reason,
            certified=scale,
            certified_window=-1 if certified is None else certified,
            estimate=estimate,
            first_failing=min(above, default=np.nan),
            posterior=posterior * factors,
            speeds_rps=tuple(
                tuple(each.rate_rps for each in of_tenant)
                for of_tenant in zip(*self.speeds, strict=True)
            ),
            work_s=tuple(map(speed.work_s, zip(*self.speeds, strict=True))),
            rounds=tuple(self.rounds),
            model=self.model_limits(FINE),
            cliff=cliff(self.on_the_line, self.names),
            other_load=largest_other_load(self.on_the_line),
            windows=tuple(self.windows),
        )

    def _outcome(
        self, estimate: float, certified: int | None, *, is_bounded: bool
    ) -> tuple[Outcome, str]:
        windows = self.on_the_line
        if np.isnan(estimate):
            return outcome_without_pass(windows, self.model.line.base_rps, self.names)
        if self.speed_change > LARGEST_CHANGE:
            first, *_, last = self.speeds
            return Outcome.UNSTEADY, why_unsteady(first, last, self.names, LARGEST_CHANGE)
        if certified is None:
            if reason := why_certification_is_invalid(windows):
                return Outcome.DISTURBED, reason
            return Outcome.UNCERTIFIED, why_uncertified(windows[-1], self.names)
        if not is_bounded:
            return Outcome.UNCERTIFIED, why_unbounded(windows, self.names)
        return Outcome.OK, ""

    # Windows

    @property
    def slas(self) -> tuple[Sla, ...]:
        return self.model.slas

    @property
    def loaded(self) -> list[int]:
        """Return the indices of the tenants that have load in this search."""
        return np.flatnonzero(self.model.line.rates_rps(self.start)).tolist()

    @property
    def windows(self) -> list[Window]:
        return self.runner.windows

    @property
    def on_the_line(self) -> list[Window]:
        return self.runner.on_the_line

    def _limit(self, near: float, draws: int) -> Limit:
        return line_limit(self.model, self.on_the_line, near, Draws.of(draws, self.rng))

    def _may_go_on(self) -> bool:
        """Return whether bracketing or bisection may measure at one more load factor.

        The result is false after windows at `max_windows` different load factors, or if other
        processes keep the host busy.
        """
        return (
            not self.host_stays_busy
            and len({window.scale for window in self.on_the_line}) < self.settings.max_windows
        )

    def _measure(self, phase: Phase, scale: float) -> Window:
        """Measure a window at the load factor `scale`. If the window is invalid, measure again, and
        return the last window.

        After two invalid attempts, the third attempt accepts the disturbances that ON_BUSY_HOST
        allows, and any temporary slowdown of the server. From then on, all windows of the search
        accept the disturbances that ON_BUSY_HOST allows. If other processes use more of the server
        than ON_BUSY_HOST allows, the search waits until these processes use less. Then the search
        makes one more attempt. After PATIENCE_S seconds of waiting in total, the search no longer
        waits, and no longer repeats invalid windows.
        """
        rates_rps = self.model.line.rates_rps(scale)
        for _ in range(0 if self.host_stays_busy else ATTEMPTS - 1):
            window = self.runner.counted(phase, scale, rates_rps, self.tolerance)
            if window.verdict is not Verdict.INVALID:
                return window
        self.tolerance = ON_BUSY_HOST
        last = replace(ON_BUSY_HOST, slowed=np.inf)
        window = self.runner.counted(phase, scale, rates_rps, last)
        if window.host_is_busy and not self.host_stays_busy:
            self.host_stays_busy = not self.system.wait_until_idle(ON_BUSY_HOST.other_load)
            if not self.host_stays_busy:
                self.speeds.clear()  # other processes slowed the server during these probes
                self.probe_saturation()
                window = self.runner.counted(phase, scale, rates_rps, last)
        return window

    def _closed_until_steady(self) -> tuple[Steadiness, ...]:
        """Run a closed loop until the latency of each tenant is steady, or until the warm-up time
        of the preset is over. Return the steadiness of each tenant's latency."""
        longest_s = max(self.settings.warm_up_s, SHORTEST_WARM_UP_S)
        looks_s = np.append(np.arange(SHORTEST_WARM_UP_S, longest_s, LOOKS_S), longest_s)
        in_flight = tuple(IN_FLIGHT if i in self.loaded else 0 for i in range(len(self.slas)))
        looks = tuple(looks_s.tolist())
        plan = WindowPlan(Phase.WARM_UP, np.nan, (), 0.0, looks, self.tolerance, in_flight)

        def done(window: Window) -> bool:
            return all(found.surely_steady for found in of_each_tenant(window.seen))

        return of_each_tenant(self.runner.run(plan, done).seen)
