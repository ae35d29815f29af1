"""How long the windows of a search last, and all of them together, known beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perseus.peak import speed
from perseus.peak.stats import fewest_requests
from perseus.peak.window import Phase
from perseus.study.presets import Effort, SearchSettings
from perseus.study.sla import Sla

USUAL_WARM_UP_S = 5.0
USUAL_COARSE = 2  # windows of bracketing, and of bisection
CERTIFY_AT = (0.85, 0.75, 0.6)
"""Shares of the estimate that are tried to be certified, until one passes."""

ATTEMPTS = 3
"""How often a window is tried that the client or the host spoils."""

FEWEST_COUNTED, LONGEST_COUNTED_S = 50, 120.0
"""Requests of the slowest tenant that a window waits for, but for no longer than so many seconds:
one without any says nothing."""

TIMES_FEWEST = 3
"""Times the fewest requests that an SLA needs which a window that certifies a slow model waits for,
within what its preset allows: late requests come together, so that each tells less."""

SPARE = 1.2
"""Times the fewest requests that are to be expected in a window, so that most windows have them:
arrivals are random."""

MOST_ROOT = 2
"""How many times as many windows as usual there may be around the limit, where its interval is not
narrow: a burst on the host can end a window that the server would have passed, and the windows
after it then find nothing that fails."""

PATIENCE_S = 120.0
"""For all that is waited beside one server until others leave its host: a build or a backup may end
within that, and a host where nothing ends is told of within minutes."""

SPEEDS = 4
"""Times that the speed of a busy server is looked at in a search."""


def effort(phase: Phase, settings: SearchSettings) -> Effort:
    """How much evidence a window collects that counts requests."""
    efforts = {
        Phase.ROOT: settings.root,
        Phase.ALONE: settings.root,
        Phase.CONFIRM: settings.confirm,
    }
    return efforts.get(phase, settings.coarse)


def settle_s(settings: SearchSettings, slas: Sequence[Sla]) -> float:
    """A window starts at an empty server; queues reach their steady state in a few SLAs."""
    return max(1.0, settings.settle_slas * max(sla.latency_ms for sla in slas) / 1000)


def grace_s(slas: Sequence[Sla]) -> float:
    """How long before a look a request must have been intended for its fate to count.

    Twice the longest SLA: whoever is unanswered by then is late, and a lost request stands out from
    a slow one.
    """
    return 2 * max(sla.latency_ms for sla in slas) / 1000


def counted_s(
    phase: Phase, settings: SearchSettings, slas: Sequence[Sla], rates_rps: Sequence[float]
) -> float:
    """How long requests count: until each tenant has enough of them, or no longer."""
    much, loaded = effort(phase, settings), _loaded(slas, rates_rps)
    slowest_rps = min(rate for _, rate in loaded)
    longest_s = max(much.max_s, min(FEWEST_COUNTED / slowest_rps, LONGEST_COUNTED_S))
    if phase is Phase.CONFIRM and all(rate >= lowest_rps(settings, sla) for sla, rate in loaded):
        needs_s = max(fewest_requests(sla.allowed) / rate for sla, rate in loaded)
        longest_s = max(longest_s, min(TIMES_FEWEST * needs_s, settings.slow_confirm_s))
    return min(much.requests / slowest_rps, longest_s)


def lowest_rps(settings: SearchSettings, sla: Sla) -> float:
    """The rate below which hardly a window can certify: too few requests in the longest; maybe
    infinite.

    Where requests come late together, more are needed (docs/explanation/verdict.md).
    """
    fewest = fewest_requests(sla.allowed)
    enough = fewest <= settings.confirm.requests
    return SPARE * fewest / settings.slow_confirm_s if enough else float("inf")


def _loaded(slas: Sequence[Sla], rates_rps: Sequence[float]) -> list[tuple[Sla, float]]:
    """SLA and rate of each tenant that has load."""
    return [(sla, rate) for sla, rate in zip(slas, rates_rps, strict=True) if rate > 0]


def window_s(
    phase: Phase, settings: SearchSettings, slas: Sequence[Sla], rates_rps: Sequence[float]
) -> float:
    if phase is Phase.WARM_UP:
        return USUAL_WARM_UP_S
    if phase is Phase.SPEED:
        return speed.SHORTEST_S if len(slas) == 1 else 1.2 * speed.ROUND_S
    overhead_s = settle_s(settings, slas) + grace_s(slas)
    return overhead_s + counted_s(phase, settings, slas, rates_rps)


def usual_windows(settings: SearchSettings, tenants: int) -> dict[Phase, int]:
    """How many windows of each phase a search mostly takes, in their order."""
    alone = tenants == 1  # else a simulated queue tells where to begin
    return {
        Phase.WARM_UP: 1,
        Phase.BRACKET: USUAL_COARSE,
        Phase.BISECT: USUAL_COARSE if alone else 0,
        Phase.ROOT: settings.root_windows if alone else min(2, settings.root_windows),
        Phase.CONFIRM: settings.confirmations + 1,
        Phase.SPEED: SPEEDS * (settings.rounds * (tenants + 1) if tenants > 1 else 1),
        Phase.ALONE: tenants if tenants > 1 else 0,
    }


def expected_s(settings: SearchSettings, slas: Sequence[Sla], rates_rps: Sequence[float]) -> float:
    """Seconds of load that a search mostly takes."""
    return seconds_left({}, settings, slas, rates_rps)


def seconds_left(
    done: Mapping[Phase, int],
    settings: SearchSettings,
    slas: Sequence[Sla],
    rates_rps: Sequence[float],
) -> float:
    """A guess of what is left after `done` windows of each phase."""
    usual = usual_windows(settings, len(slas))
    phases = list(usual)
    reached = max((phases.index(each) for each in done if each is not Phase.SPEED), default=0)
    to_come = phases[min(reached, phases.index(Phase.SPEED)) :]
    return sum(
        max(usual[each] - done.get(each, 0), 0) * window_s(each, settings, slas, rates_rps)
        for each in to_come
    )


def loop_s(settings: SearchSettings, slas: Sequence[Sla]) -> float:
    """Seconds of one level of a sweep of concurrencies."""
    return settle_s(settings, slas) + grace_s(slas) + settings.root.max_s


def longest_s(settings: SearchSettings, slas: Sequence[Sla], rates_rps: Sequence[float]) -> float:
    """Seconds of load that a search takes at most around such rates: all windows are as long as
    they may be, tried as often, and once more when others have left the host."""
    s, overhead_s = settings, settle_s(settings, slas) + grace_s(slas)
    most = {
        Phase.BRACKET: s.max_windows,
        Phase.ROOT: MOST_ROOT * s.root_windows,
        Phase.CONFIRM: s.confirmations * len(CERTIFY_AT),
        Phase.ALONE: len(slas) if len(slas) > 1 else 0,
    }
    # A search that begins below what can be certified may end above that.
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
