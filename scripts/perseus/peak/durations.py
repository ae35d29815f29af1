"""Compute the lengths of the windows of a search, and estimate how long a search lasts."""

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
USUAL_COARSE = 2  # usual number of windows in each of two phases: bracketing and bisection
CERTIFY_AT = (0.82, 0.72, 0.6)
"""Rates that the search tries to certify, in this order. Each rate is a share of the estimated
limit. The first rate at which all windows pass is certified."""

ATTEMPTS = 3
"""Largest number of attempts to measure a valid window. If other processes disturbed the last
attempt, the search waits until these processes use less of the server. Then the search makes one
more attempt."""

FEWEST_COUNTED, LONGEST_COUNTED_S = 50, 120.0
"""At a low rate, the counted part of a window may last longer than the preset allows. The counted
part may last until the tenant with the lowest rate has FEWEST_COUNTED requests, but at most
LONGEST_COUNTED_S seconds."""

LESS_ALONE = 4
"""A window of a tenant alone contains 1 / LESS_ALONE of the requests of a window near the limit.
Fewer requests are enough, because a tenant alone at its share of the certified rate has hardly any
queue, so its requests are nearly independent."""

TIMES_FEWEST = 3
"""With fewer than `fewest_requests` requests, a window cannot pass. Therefore, at a low rate, a
certification window may last until each tenant has TIMES_FEWEST times this number of requests, but
at most the time `slow_certify_s` of the preset. TIMES_FEWEST exceeds 1, since a cluster of late
requests is little more evidence than one late request."""

CLUSTERED = 2.0
"""If late requests come in clusters, a certification window may have too few independent requests
at its planned end. The window may then last up to CLUSTERED times the longest time of the
preset."""

ENOUGH = 1.25
"""A certification window has enough requests if it contains ENOUGH times `fewest_independent`
independent requests (`peak.stats`). With `fewest_independent` requests, the window passes only if
no request is late. With ENOUGH times this number, the window can also pass with a few late
requests."""

SPARE = 1.2
"""A preset can certify a rate only if the longest certification window contains, on average, at
least SPARE times the necessary number of requests (`fewest_requests`). SPARE exceeds 1, because the
number of arrivals is random, and most windows must contain enough requests."""

MAX_NEAR_LIMIT_FACTOR = 2
"""Largest number of windows near the limit, as a multiple of the usual number. The search adds
windows while the interval of the limit is wide. Without this bound, a search might not end: if
other processes make a window fail far below the limit, the search measures near this low load, all
later windows pass, and the interval stays wide."""

PATIENCE_S = 120.0
"""Longest total time in seconds for which the search of one cell waits until other processes end,
for example a software build or a backup."""

SPEEDS = 3
"""Usual number of saturation probes in a search."""


def effort(phase: Phase, settings: SearchSettings) -> Effort:
    """Return two bounds of the counted part of a window: the planned number of requests, and the
    longest time."""
    near = settings.near_limit
    efforts = {
        Phase.NEAR_LIMIT: near,
        Phase.ALONE: replace(near, requests=near.requests // LESS_ALONE),
        Phase.CERTIFY: settings.certify,
    }
    return efforts.get(phase, settings.coarse)


def settle_s(settings: SearchSettings, slas: Sequence[Sla]) -> float:
    """Return the settling time of a window in seconds: a multiple of the longest latency limit,
    because a queue reaches its steady state within a few latency limits."""
    return max(1.0, settings.settle_slas * max(sla.latency_ms for sla in slas) / 1000)


def grace_s(slas: Sequence[Sla]) -> float:
    """Return the length in seconds of the last part of a window.

    Requests that arrive in the last part do not count. During this part, the server can answer the
    last counted requests. If a counted request has no response at the end of the window, it is
    late.
    """
    return 2 * max(sla.latency_ms for sla in slas) / 1000


def counted_s(
    phase: Phase, settings: SearchSettings, slas: Sequence[Sla], rates_rps: Sequence[float]
) -> float:
    """Return the planned length in seconds of the counted part of a window.

    Only the requests of the counted part determine the verdict. This part lasts until each tenant
    with load has sent the number of requests that the preset plans, but usually no longer than the
    preset allows. At low rates, this part may last longer (FEWEST_COUNTED, TIMES_FEWEST).
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

    If the preset can certify the SLA at no rate, the result is infinite. If late requests come in
    clusters, windows somewhat above the returned rate may also contain too few requests
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
    """Return the usual number of windows of each phase. The phases are in the order in which they
    end."""
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
    """Return the time in seconds for which a search usually offers load, if the limit is near the
    rates `rates_rps`."""
    return seconds_left({}, settings, slas, rates_rps)


def seconds_left(
    done: Mapping[Phase, int],
    settings: SearchSettings,
    slas: Sequence[Sla],
    rates_rps: Sequence[float],
) -> float:
    """Return the estimated remaining time of a search in seconds. `done` contains the number of
    finished windows of each phase. `rates_rps` are rates near the limit."""
    usual = usual_windows(settings, len(slas))
    phases = list(usual)
    reached = max((phases.index(each) for each in done if each is not Phase.PROBE), default=0)
    to_come = phases[min(reached, phases.index(Phase.PROBE)) :]
    return sum(
        max(usual[each] - done.get(each, 0), 0) * window_s(each, settings, slas, rates_rps)
        for each in to_come
    )


def loop_s(settings: SearchSettings, slas: Sequence[Sla]) -> float:
    """Return the length in seconds of a window of `measurement.closed_loop`."""
    return settle_s(settings, slas) + grace_s(slas) + settings.near_limit.max_s


def longest_s(settings: SearchSettings, slas: Sequence[Sla], rates_rps: Sequence[float]) -> float:
    """Return the longest time in seconds for which a search can offer load, if the limit is near
    the rates `rates_rps`.

    The longest search has the largest number of windows, and every window has its largest length
    and its largest number of attempts.
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
