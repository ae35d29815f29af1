"""How much evidence a search collects. The presets are in `precision`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """How long a window counts: until the slowest tenant has `requests`, but at most `max_s`.

    Its verdict is looked at `looks` times, evenly spread, and it ends as soon as that is clear.
    """

    requests: int
    max_s: float
    looks: int


@dataclass(frozen=True)
class Settings:
    """How much evidence a search collects."""

    warm_up_s: float  # at most, until the server is steady
    confidence: float  # of each verdict, one-sided, over all looks of a window together
    settle_slas: float  # load offered before a window counts, in multiples of the longest SLA
    coarse: Effort
    root: Effort
    confirm: Effort
    root_windows: int
    confirmations: int  # fresh windows that must all pass
    ratio: float  # the bracket is narrow enough when high / low is at most this
    max_windows: int = 16  # of bracketing and bisection
