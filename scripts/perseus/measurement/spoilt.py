"""Windows that the client or the host spoil, so that they say nothing of the server."""

from __future__ import annotations

from collections.abc import Callable

from perseus.peak.durations import ATTEMPTS
from perseus.peak.outcome import Outcome
from perseus.peak.verdict import NO_QUIET, QUIET, Tolerance, Verdict
from perseus.peak.window import Window


class SpoiltError(RuntimeError):
    """A window was spoilt at every attempt; the message says how, `outcome` by client or host."""

    def __init__(self, reason: str, outcome: Outcome) -> None:
        super().__init__(reason)
        self.outcome = outcome


def unspoilt(offer: Callable[[Tolerance], Window]) -> Window:
    """The first window that is not spoilt, of so many attempts. Raises SpoiltError.

    The last of them is made where there is no quiet to wait for, as a search makes it.
    """
    for attempts_left in reversed(range(ATTEMPTS)):
        window = offer(QUIET if attempts_left else NO_QUIET)
        spoilt = [tenant for tenant in window.tenants if tenant.verdict is Verdict.INVALID]
        if not spoilt:
            return window
    by_host = all(tenant.disturbed for tenant in spoilt)
    raise SpoiltError(spoilt[0].reason, Outcome.DISTURBED if by_host else Outcome.CLIENT_LIMITED)
