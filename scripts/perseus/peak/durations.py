"""Compute, before a search, how long the search and its windows will last."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from perseus.peak import speed
from perseus.peak.stats import fewest_requests
from perseus.peak.window import Phase
from perseus.study.presets import Effort, SearchSettings
from perseus.study.sla import Sla

USUAL_WARM_UP_S = 5.0
USUAL_COARSE = 2  # usual number of windows in the bracketing phase, and in the bisection phase
CERTIFY_AT = (0.82, 0.72, 0.6)
"""Rates that the search tries to certify, as shares of the estimated limit. The search tries the
rates in this order until all windows at one rate pass."""

ATTEMPTS = 3
"""A search repeats an invalid window until it has made this number of attempts. If other processes
disturbed the last attempt, the search waits for an idle host and makes one more."""

FEWEST_COUNTED, LONGEST_COUNTED_S = 50, 120.0
"""For a slow model, the counted part of a window may last longer than the preset allows. The
counted part then ends when the tenant with the lowest rate has FEWEST_COUNTED requests, but at the
latest after LONGEST_COUNTED_S seconds."""

LESS_ALONE = 4
"""A window near the limit contains LESS_ALONE times as many requests as the window of a tenant
alone. A tenant alone at its share of a certified rate has hardly any queue, so its requests are
nearly independent."""

TIMES_FEWEST = 3
"""For a slow model, a certification window may count requests until each tenant has TIMES_FEWEST
times `fewest_requests` requests. The setting `slow_certify_s` of the preset limits this time.
TIMES_FEWEST exceeds 1, since a cluster of late requests is little more evidence than one
request."""

CLUSTERED = 2.0
"""A certification window with too few independent requests may last up to CLUSTERED times the
longest time of the preset. The more late requests come in clusters, the fewer requests count as
independent."""

ENOUGH = 1.25
"""Factor on `stats.fewest_independent`, the least number of independent requests with which a
certification window can pass. This least number is enough only if no request is late. With ENOUGH
times this number, the window can also pass with a few late requests."""

SPARE = 1.2
"""At the lowest rate that a preset certifies, the longest certification window contains on average
SPARE times `fewest_requests` requests. SPARE exceeds 1, since the number of arrivals is random, and
most windows must contain enough requests."""

MAX_NEAR_LIMIT_FACTOR = 2
"""A search measures at most this multiple of the usual number of windows near the limit. The search
adds windows while the interval of the limit is wide. The interval can stay wide: if other processes
make a window fail far below the limit, the search measures near this low load, and all later
windows pass."""

PATIENCE_S = 120.0
"""Longest total time in seconds for which the search of one cell waits for other processes to end,
for example a software build or a backup. If the host stays busy, the search ends within minutes."""

SPEEDS = 3
"""Number of saturation probes in a search."""


def effort(phase: Phase, settings: SearchSettings) -> Effort:
    """Return the settings of the counted part of a window in the phase `phase`: its number of
    requests, and its largest length in seconds."""
    near = settings.near_limit
    efforts = {
        Phase.NEAR_LIMIT: near,
        Phase.ALONE: replace(near, requests=near.requests // LESS_ALONE),
        Phase.CERTIFY: settings.certify,
    }
    return efforts.get(phase, settings.coarse)


def settle_s(settings: SearchSettings, slas: Sequence[Sla]) -> float:
    """Return the settling time of a window in seconds. Queues reach their steady state within a few
    times the latency limit of the SLA."""
    return max(1.0, settings.settle_slas * max(sla.latency_ms for sla in slas) / 1000)


def grace_s(slas: Sequence[Sla]) -> float:
    """Return the seconds that the search waits for the responses to the last counted requests. A
    counted request without a response after this time is late."""
    return 2 * max(sla.latency_ms for sla in slas) / 1000


def counted_s(
    phase: Phase, settings: SearchSettings, slas: Sequence[Sla], rates_rps: Sequence[float]
) -> float:
    """Return the largest length of the counted part of a window, in seconds. The counted part
    contains the requests that determine the verdict.

    The counted part lasts until each tenant has the required number of requests, but no longer than
    the preset allows, except for slow models (FEWEST_COUNTED, TIMES_FEWEST).
    """
    much, loaded = effort(phase, settings), _loaded(slas, rates_rps)
    slowest_rps = min(rate for _, rate in loaded)
    longest_s = max(much.max_s, min(FEWEST_COUNTED / slowest_rps, LONGEST_COUNTED_S))
    if phase is Phase.CERTIFY and all(rate >= lowest_rps(settings, sla) for sla, rate in loaded):
        needs_s = max(fewest_requests(sla.allowed) / rate for sla, rate in loaded)
        longest_s = max(longest_s, min(TIMES_FEWEST * needs_s, settings.slow_certify_s))
    return min(much.requests / slowest_rps, longest_s)


def lowest_rps(settings: SearchSettings, sla: Sla) -> float:
    """Return the rate in requests/s below which certification windows contain too few requests to
    pass.

    The rate is infinite if the preset cannot certify the SLA at any rate. If late requests come in
    clusters, a window at the returned rate may also contain too few requests
    (docs/explanation/verdict.md).
    """
    fewest = fewest_requests(sla.allowed)
    enough = fewest <= settings.certify.requests
    return SPARE * fewest / settings.slow_certify_s if enough else float("inf")


def _loaded(slas: Sequence[Sla], rates_rps: Sequence[float]) -> list[tuple[Sla, float]]:
    return [(sla, rate) for sla, rate in zip(slas, rates_rps, strict=True) if rate > 0]


def window_s(
    phase: Phase, settings: SearchSettings, slas: Sequence[Sla], rates_rps: Sequence[float]
) -> float:
    if phase is Phase.WARM_UP:
        return USUAL_WARM_UP_S
    if phase is Phase.PROBE:
        return speed.SHORTEST_S if len(slas) == 1 else 1.2 * speed.ROUND_S
    overhead_s = settle_s(settings, slas) + grace_s(slas)
    return overhead_s + counted_s(phase, settings, slas, rates_rps)


def usual_windows(settings: SearchSettings, tenants: int) -> dict[Phase, int]:
    """Return the usual number of windows of each phase, in the order of the phases."""
    alone = tenants == 1  # with several tenants, a search starts near the simulated limit
    near_limit = settings.near_limit_windows
    return {
        Phase.WARM_UP: 1,
        Phase.BRACKET: USUAL_COARSE,
        Phase.BISECT: USUAL_COARSE if alone else 0,
        Phase.NEAR_LIMIT: near_limit if alone else math.ceil(near_limit / 3),
        Phase.CERTIFY: settings.certify_windows,
        Phase.PROBE: SPEEDS * (settings.rounds * (tenants + 1) if tenants > 1 else 1),
        Phase.ALONE: tenants if tenants > 1 else 0,
    }


def expected_s(settings: SearchSettings, slas: Sequence[Sla], rates_rps: Sequence[float]) -> float:
    """Return the time in seconds for which a search usually offers load."""
    return seconds_left({}, settings, slas, rates_rps)


def seconds_left(
    done: Mapping[Phase, int],
    settings: SearchSettings,
    slas: Sequence[Sla],
    rates_rps: Sequence[float],
) -> float:
    """Return the estimated remaining time of a search in seconds. `done` contains the number of
    finished windows of each phase."""
    usual = usual_windows(settings, len(slas))
    phases = list(usual)
    reached = max((phases.index(each) for each in done if each is not Phase.PROBE), default=0)
    to_come = phases[min(reached, phases.index(Phase.PROBE)) :]
    return sum(
        max(usual[each] - done.get(each, 0), 0) * window_s(each, settings, slas, rates_rps)
        for each in to_come
    )


def loop_s(settings: SearchSettings, slas: Sequence[Sla]) -> float:
    """Return the time in seconds for which a closed loop offers load at one concurrency."""
    return settle_s(settings, slas) + grace_s(slas) + settings.near_limit.max_s


def longest_s(settings: SearchSettings, slas: Sequence[Sla], rates_rps: Sequence[float]) -> float:
    """Return the longest time in seconds for which a search offers load if the limit is near the
    rates `rates_rps`.

    In the longest search, every window has its maximum length and its maximum number of attempts.
    """
    s, overhead_s = settings, settle_s(settings, slas) + grace_s(slas)
    most = {
        Phase.BRACKET: s.max_windows,
        Phase.NEAR_LIMIT: MAX_NEAR_LIMIT_FACTOR * s.near_limit_windows,
        Phase.CERTIFY: s.certify_windows * len(CERTIFY_AT),
        Phase.ALONE: len(slas) if len(slas) > 1 else 0,
    }
    # If the start rate is too low to certify, the search may still find a limit whose certified
    # rates need longer windows than the start rate.
    lowest = [lowest_rps(s, sla) for sla in slas]
    more_rps = [
        max(rate, low) if rate > 0 and low < float("inf") else rate
        for rate, low in zip(rates_rps, lowest, strict=True)
    ]

    def most_counted_s(phase: Phase) -> float:
        around = [counted_s(phase, s, slas, each) for each in (rates_rps, more_rps)]
        preset_s = effort(phase, s).max_s * (CLUSTERED if phase is Phase.CERTIFY else 1)
        return max(preset_s, *around)

    windows_s = sum(count * (overhead_s + most_counted_s(phase)) for phase, count in most.items())
    rounds_s = s.rounds * (len(slas) + 1) * speed.ROUND_LONGEST_S
    speeds_s = 1.2 * (SPEEDS + 1) * (rounds_s if len(slas) > 1 else speed.LONGEST_S)
    return 2 * s.warm_up_s + speeds_s + (ATTEMPTS + 1) * windows_s + PATIENCE_S
