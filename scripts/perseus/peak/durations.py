"""Compute, before a search, how long the search and its windows last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perseus.peak import speed
from perseus.peak.stats import fewest_requests
from perseus.peak.window import Phase
from perseus.study.presets import Effort, SearchSettings
from perseus.study.sla import Sla

USUAL_WARM_UP_S = 5.0
USUAL_COARSE = 2  # windows of the bracketing phase, and of the bisection phase
CERTIFY_AT = (0.85, 0.75, 0.6)
"""Rates that the search tries to certify, as shares of the estimated limit. The search tries the
rates in this order until the windows at one rate pass."""

ATTEMPTS = 3
"""Largest number of attempts at a window. A search repeats invalid windows."""

FEWEST_COUNTED, LONGEST_COUNTED_S = 50, 120.0
"""Least number of requests of the slowest tenant in a window. Requests count for at most
LONGEST_COUNTED_S seconds, even if there are fewer."""

TIMES_FEWEST = 3
"""Number of requests in the certification windows of slow models, as a multiple of
`fewest_requests`, if the preset allows the time. Late requests are correlated, so each late request
is weaker evidence than an independent request."""

SPARE = 1.2
"""Expected number of requests in the longest certification window at the lowest rate that a preset
certifies, as a multiple of `fewest_requests`. With this multiple, most windows contain enough
requests, although the number of arrivals is random."""

MAX_NEAR_LIMIT_FACTOR = 2
"""Largest number of windows near the limit, as a multiple of the usual number. The search adds
windows while the interval of the limit is wide. For example, other processes may make a window fail
at a load far below the limit. The search then measures near this low load, where no later window
fails."""

PATIENCE_S = 120.0
"""Longest total time in seconds that one cell waits until other processes end. A software build or
a backup may end within this time. If the host stays busy, the cell ends within minutes."""

SPEEDS = 4
"""Number of saturation probes in a search."""


def effort(phase: Phase, settings: SearchSettings) -> Effort:
    """Return the number of requests to count in a window of this phase, and the longest time to
    count, in seconds."""
    efforts = {
        Phase.NEAR_LIMIT: settings.near_limit,
        Phase.ALONE: settings.near_limit,
        Phase.CERTIFY: settings.certify,
    }
    return efforts.get(phase, settings.coarse)


def settle_s(settings: SearchSettings, slas: Sequence[Sla]) -> float:
    """Return the settling time of a window in seconds. Queues reach their steady state within a few
    times the SLA's latency."""
    return max(1.0, settings.settle_slas * max(sla.latency_ms for sla in slas) / 1000)


def grace_s(slas: Sequence[Sla]) -> float:
    """Return the seconds that the search waits for the responses to the last counted requests.

    A request without a response within this time is late. The time is so long that a slow request
    is not mistaken for a lost request.
    """
    return 2 * max(sla.latency_ms for sla in slas) / 1000


def counted_s(
    phase: Phase, settings: SearchSettings, slas: Sequence[Sla], rates_rps: Sequence[float]
) -> float:
    """Return the longest counted part of a window, in seconds.

    The counted part is long enough for the required number of requests of each tenant, but no
    longer than the preset allows. For slow models, the counted part may be longer than the preset
    allows (FEWEST_COUNTED, TIMES_FEWEST).
    """
    much, loaded = effort(phase, settings), _loaded(slas, rates_rps)
    slowest_rps = min(rate for _, rate in loaded)
    longest_s = max(much.max_s, min(FEWEST_COUNTED / slowest_rps, LONGEST_COUNTED_S))
    if phase is Phase.CERTIFY and all(rate >= lowest_rps(settings, sla) for sla, rate in loaded):
        needs_s = max(fewest_requests(sla.allowed) / rate for sla, rate in loaded)
        longest_s = max(longest_s, min(TIMES_FEWEST * needs_s, settings.slow_certify_s))
    return min(much.requests / slowest_rps, longest_s)


def lowest_rps(settings: SearchSettings, sla: Sla) -> float:
    """Return the rate below which windows contain too few requests to certify the SLA.

    The rate is infinite if the preset cannot certify the SLA at any rate. If late requests come in
    clusters, a window needs more requests (docs/explanation/verdict.md).
    """
    fewest = fewest_requests(sla.allowed)
    enough = fewest <= settings.certify.requests
    return SPARE * fewest / settings.slow_certify_s if enough else float("inf")


def _loaded(slas: Sequence[Sla], rates_rps: Sequence[float]) -> list[tuple[Sla, float]]:
    """Return the SLA and the rate of each tenant that has load."""
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
        Phase.NEAR_LIMIT: near_limit if alone else min(2, near_limit),
        Phase.CERTIFY: settings.certify_windows + 1,
        Phase.PROBE: SPEEDS * (settings.rounds * (tenants + 1) if tenants > 1 else 1),
        Phase.ALONE: tenants if tenants > 1 else 0,
    }


def expected_s(settings: SearchSettings, slas: Sequence[Sla], rates_rps: Sequence[float]) -> float:
    """Return the usual time in seconds for which a search offers load."""
    return seconds_left({}, settings, slas, rates_rps)


def seconds_left(
    done: Mapping[Phase, int],
    settings: SearchSettings,
    slas: Sequence[Sla],
    rates_rps: Sequence[float],
) -> float:
    """Return the estimated remaining seconds of a search after `done` windows of each phase."""
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
    """Return the longest time in seconds for which a search near these rates can offer load.

    In the longest search, every window has its maximum length and needs all attempts.
    """
    s, overhead_s = settings, settle_s(settings, slas) + grace_s(slas)
    most = {
        Phase.BRACKET: s.max_windows,
        Phase.NEAR_LIMIT: MAX_NEAR_LIMIT_FACTOR * s.near_limit_windows,
        Phase.CERTIFY: s.certify_windows * len(CERTIFY_AT),
        Phase.ALONE: len(slas) if len(slas) > 1 else 0,
    }
    # Windows may be too short to certify the start rate, but long enough for a higher limit.
    lowest = [lowest_rps(s, sla) for sla in slas]
    more_rps = [
        max(rate, low) if rate > 0 and low < float("inf") else rate
        for rate, low in zip(rates_rps, lowest, strict=True)
    ]

    def most_counted_s(phase: Phase) -> float:
        around = [counted_s(phase, s, slas, each) for each in (rates_rps, more_rps)]
        return max(effort(phase, s).max_s, *around)

    windows_s = sum(count * (overhead_s + most_counted_s(phase)) for phase, count in most.items())
    rounds_s = s.rounds * (len(slas) + 1) * speed.ROUND_LONGEST_S
    speeds_s = 1.2 * (SPEEDS + 1) * (rounds_s if len(slas) > 1 else speed.LONGEST_S)
    return 2 * s.warm_up_s + speeds_s + (ATTEMPTS + 1) * windows_s + PATIENCE_S
