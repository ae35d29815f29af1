"""Repeat a window if it is invalid because of the client or the host."""

from __future__ import annotations

from collections.abc import Callable

from perseus.peak.durations import ATTEMPTS
from perseus.peak.outcome import Outcome
from perseus.peak.system import System
from perseus.peak.verdict import ON_BUSY_HOST, ON_IDLE_HOST, Tolerance
from perseus.peak.window import Window


class InvalidWindowError(RuntimeError):
    """A window was invalid at every attempt.

    The message states the reason. `outcome` says whether the client or the host made the window
    invalid.
    """

    def __init__(self, reason: str, outcome: Outcome) -> None:
        super().__init__(reason)
        self.outcome = outcome


def first_valid_window(
    system: System, offer: Callable[[Tolerance], Window], tolerance: Tolerance = ON_IDLE_HOST
) -> Window:
    """Return the first valid window of ATTEMPTS attempts, or the last window if all are invalid.

    The function `offer` runs a window with a given tolerance for disturbances. The last attempt
    accepts a larger load of other processes than the earlier attempts. If their load is too large
    even for the last attempt, the function waits until their load falls (`wait_until_idle`). If the
    load falls in time, the function makes one more attempt.
    """
    for attempts_left in reversed(range(ATTEMPTS)):
        window = offer(tolerance if attempts_left else ON_BUSY_HOST)
        if not window.invalid_tenants:
            return window
    if window.host_is_busy and system.wait_until_idle(ON_BUSY_HOST.other_load):
        window = offer(ON_BUSY_HOST)
    return window


def valid_window(system: System, offer: Callable[[Tolerance], Window]) -> Window:
    """Return the first valid window; raise InvalidWindowError if every attempt is invalid."""
    window = first_valid_window(system, offer)
    if not window.invalid_tenants:
        return window
    by_host = all(tenant.disturbed for tenant in window.invalid_tenants)
    raise InvalidWindowError(
        window.invalid_tenants[0].reason, Outcome.DISTURBED if by_host else Outcome.CLIENT_LIMITED
    )
