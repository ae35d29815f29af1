"""Windows that the client or the host spoil, so that they say nothing of the server."""

from __future__ import annotations

from collections.abc import Callable

from perseus.peak.durations import ATTEMPTS
from perseus.peak.outcome import Outcome
from perseus.peak.system import System
from perseus.peak.verdict import NO_QUIET, QUIET, Tolerance
from perseus.peak.window import Window


class SpoiltError(RuntimeError):
    """A window was spoilt at every attempt; the message says how, `outcome` by client or host."""

    def __init__(self, reason: str, outcome: Outcome) -> None:
        super().__init__(reason)
        self.outcome = outcome


def tried_again(
    system: System, offer: Callable[[Tolerance], Window], quiet: Tolerance = QUIET
) -> Window:
    """The first window that is not spoilt, of so many attempts, or the last.

    That is made where there is no quiet to wait for, as a search makes it, and once more when
    others, who left too little of the host even for that, have gone.
    """
    for attempts_left in reversed(range(ATTEMPTS)):
        window = offer(quiet if attempts_left else NO_QUIET)
        if not window.spoilt:
            return window
    if window.crowded_out and system.until_quiet(NO_QUIET.foreign):
        window = offer(NO_QUIET)
    return window


def unspoilt(system: System, offer: Callable[[Tolerance], Window]) -> Window:
    """As `tried_again`; raises SpoiltError where the last window is spoilt, too."""
    window = tried_again(system, offer)
    if not window.spoilt:
        return window
    by_host = all(tenant.disturbed for tenant in window.spoilt)
    raise SpoiltError(
        window.spoilt[0].reason, Outcome.DISTURBED if by_host else Outcome.CLIENT_LIMITED
    )
