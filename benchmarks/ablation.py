"""Measure how much each rule of the estimate contributes.

The benchmark switches off one rule at a time, and computes the estimate again from the windows of
the same searches. The searches run in virtual time with the preset `quick`, both against the
simulated servers on which the constants of the estimate were tuned and against other simulated
servers. The library has no settings that switch off a rule, so the benchmark replaces functions and
constants of the library.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.results import Row
from benchmarks.servers import BURSTS, GAPS, HELD_OUT, KNOWN, Found, Server, limit_rps, search
from benchmarks.serving import Place, Say
from perseus.peak import queue_replay, tenant_limit
from perseus.peak.evidence import Evidence
from perseus.peak.exceedance_curve import ExceedanceCurve
from perseus.peak.line_limit import ABOVE, valid_near
from perseus.peak.line_model import LineModel
from perseus.peak.outcome import Peak
from perseus.peak.posterior import WANDERS, LateCounts
from perseus.peak.queue_replay import IN_TURN, OUT_OF_TURN, SEEN, QueueReplay, Trust
from perseus.peak.search import _Search
from perseus.peak.stats import Floats
from perseus.peak.tenant_limit import Draws, Limit
from perseus.peak.window import Window

BENCHMARK = "ablation"
SEEDS = 8
"""Number of searches of each server. All rules are tested with the same searches."""

GROUPS = {"servers used for tuning": {**KNOWN, **GAPS}, "other servers": {**HELD_OUT, **BURSTS}}

Patches = Mapping[str, Any]
"""Replacements for functions and constants of `perseus.peak`, by name."""


def always(value: object) -> Callable[..., Any]:
    return lambda *args, **more: value


def with_luck(replay: QueueReplay, curve: ExceedanceCurve) -> LateCounts:
    """Return the observed numbers of late requests, without the correction for random arrivals."""
    return LateCounts(
        log_scales=np.log([seen.scale for seen in replay.windows]),
        late=np.array([float(seen.late.sum()) for seen in replay.windows]),
        requests=np.array([len(seen.late) for seen in replay.windows]),
        weights=replay.worth,
        freedom=tenant_limit._freedom(replay.windows),
    )


def without_service_time_error(
    work_s: Floats, rate_rps: float, draws: int, rng: np.random.Generator
) -> Floats:
    return np.ones(draws)


def unfitted(model: LineModel, tenant: int, windows: Sequence[Evidence]) -> QueueReplay:
    """Return a virtual queue whose service times are the latencies without load, not fitted to the
    windows."""
    drawn = [model.queue.draw(seen.arrivals_s, queue_replay.WORK_DRAWS) for seen in windows]
    return QueueReplay(model, tenant, windows, drawn)


def without_certification(
    model: LineModel, tenant: int, windows: Sequence[Evidence]
) -> QueueReplay:
    """Return the virtual queue of all windows except certification windows."""
    others = [seen for seen in windows if not seen.certifies] or windows
    return of_all(model, tenant, others)


def of_all(model: LineModel, tenant: int, windows: Sequence[Evidence]) -> QueueReplay:
    found = queue_replay._observed(model, tenant, windows)
    return found or queue_replay._fitted(model, tenant, windows)


def at_other_levels(
    model: LineModel, tenant: int, windows: Sequence[Evidence], draws: Draws
) -> Limit:
    levels = draws.rng.permutation(draws.levels)
    return tenant_limit.tenant_limit(model, tenant, windows, Draws(levels, draws.rng))


def chosen_once(windows: Sequence[Window], scale: float, above: float) -> list[Window]:
    return valid_near(windows, scale, min(above, ABOVE))


ONE_SLOPE = 0.01
"""Prior standard deviation of the slope of the exceedance curve: so small that the slope stays as
in the virtual queue."""

ALL = "all rules"
RULES: Mapping[str, Patches] = {
    "service times are observed": {"queue_replay._observed": always(None)},
    "no observed service times if they vary more than without load": {
        "observed_work._as_alone": always(True)
    },
    "the sampling error of arrivals is removed": {
        "tenant_limit._without_sampling_error": with_luck
    },
    "few observed service times widen the interval": {
        "tenant_limit.work_error": without_service_time_error
    },
    "certification windows count if service times are observed": {
        "queue_replay.QueueReplay.of": without_certification
    },
    "certification windows do not count otherwise": {"queue_replay.QueueReplay.of": of_all},
    "the speed of the virtual queue is fitted": {"queue_replay._fitted": unfitted},
    "service times are drawn eight times": {"queue_replay.WORK_DRAWS": 1},
    "the virtual queue counts less if responses overtake each other": {
        "queue_replay.OUT_OF_TURN": IN_TURN
    },
    "the virtual queue counts more if service times are observed": {"queue_replay.SEEN": IN_TURN},
    "clusters of late requests that the virtual queue misses count": {
        "queue_replay.SEEN": Trust(1e-9, SEEN.slope_spread),
        "queue_replay.IN_TURN": Trust(1e-9, IN_TURN.slope_spread),
        "queue_replay.OUT_OF_TURN": Trust(1e-9, OUT_OF_TURN.slope_spread),
    },
    "the slope of the exceedance curve is fitted": {
        "queue_replay.SEEN": Trust(SEEN.unforeseen, ONE_SLOPE),
        "queue_replay.IN_TURN": Trust(IN_TURN.unforeseen, ONE_SLOPE),
        "queue_replay.OUT_OF_TURN": Trust(OUT_OF_TURN.unforeseen, ONE_SLOPE),
    },
    "each window has its own limit": {"posterior._wander_prior": always(np.eye(len(WANDERS))[0])},
    "limits of windows have Student's t distribution": {"posterior.TAILS": 1e6},
    "the dispersion of late requests is uncertain": {"posterior.DISPERSIONS": 1},
    "windows at similar loads share their clusters of late requests": {
        "queue_replay.SIMILAR": 1e-9,
        "window_runner.SIMILAR": 1e-9,
    },
    "six more long runs of the virtual queue": {"exceedance_curve.MORE_RUNS": 0},
    "windows near the estimated limit are selected again": {"line_limit.valid_near": chosen_once},
    "the limits of tenants are drawn at the same quantile levels": {
        "line_limit.tenant_limit": at_other_levels
    },
    "drift between saturation probes widens the interval": {"speed.wander": always(0.0)},
}

COURSE: Mapping[str, Patches] = {
    "more windows if the interval is wide": {"search.MAX_NEAR_LIMIT_FACTOR": 1},
    "windows in which the busy server was slowed are invalid": {
        "window_runner.slowed": always(1.0)
    },
}
"""Rules that decide which windows a search runs. To test these rules, the benchmark repeats the
search."""


def run(at: Place, say: Say) -> Iterator[Row]:
    os.sched_setaffinity(0, [at.client_core, at.server_core])
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for group, servers in GROUPS.items():
            found: list[list[dict[str, Found]]] = []
            for name, server in servers.items():
                limit = limit_rps(server)
                found.append(list(pool.map(partial(by_rule, server, limit), range(SEEDS))))
                say(f"{name}: true limit {limit:.1f}/s, {SEEDS} searches")
            yield from rows_of(group, found)


def by_rule(server: Server, limit: float, seed: int) -> dict[str, Found]:
    """Return the findings of one search: for each rule, the findings without this rule, and for the
    key ALL, the findings with all rules."""
    kept: list[tuple[_Search, Peak]] = []
    peak_of = _Search.peak

    def keep(self: _Search, *args: Any) -> Peak:
        peak = peak_of(self, *args)
        kept.append((self, peak))
        return peak

    with patch.object(_Search, "peak", keep):
        _, found = search(server, limit, seed)
    ((begun, peak),) = kept
    certified = None if peak.certified_window < 0 else peak.certified_window
    without: dict[str, Found] = {}
    for rule, patches in {ALL: {}, **RULES}.items():
        begun.rng = np.random.default_rng(seed)
        with off(patches):
            again = peak_of(begun, *begun.estimate(peak.estimate), certified)
        without[rule] = Found.of(again, found.truth_rps, found.seconds)
    for rule, patches in COURSE.items():
        with off(patches):
            without[rule] = search(server, limit, seed)[1]
    return without


@contextmanager
def off(patches: Patches) -> Iterator[None]:
    with ExitStack() as stack:
        for name, value in patches.items():
            stack.enter_context(patch(f"perseus.peak.{name}", value))
        yield


def rows_of(group: str, found: Sequence[Sequence[Mapping[str, Found]]]) -> Iterator[Row]:
    """Yield rows that compare, for each rule, the metrics without the rule and the metrics with all
    rules. `found` has one list per server. Each list has one mapping per search, from rules to
    findings."""
    figures = {
        rule: np.mean([_figures([each[rule] for each in of_server]) for of_server in found], axis=0)
        for rule in (ALL, *RULES, *COURSE)
    }
    for rule in (*RULES, *COURSE):
        for metric, without, with_all in zip(METRICS, figures[rule], figures[ALL], strict=True):
            if metric != LOAD or rule in COURSE:
                yield Row(BENCHMARK, f"{rule}; {group}", metric, without, with_all, ALL)


LOAD = "seconds of load"
METRICS = (
    "share of 95 % intervals that contain the truth",
    "width of the interval / truth",
    "error of the estimate / truth",
    LOAD,
)


def _figures(found: Sequence[Found]) -> tuple[float, ...]:
    """Return the METRICS of all searches of one server together; the error is the root mean square
    of their errors."""
    truth, estimate, low, high, seconds = np.array(
        [(f.truth_rps, f.estimate_rps, f.low_rps, f.high_rps, f.seconds) for f in found]
    ).T
    covered = (low <= truth) & (truth <= high)
    error = np.sqrt(np.mean((estimate / truth - 1) ** 2))
    return tuple(map(float, (covered.mean(), ((high - low) / truth).mean(), error, seconds.mean())))
