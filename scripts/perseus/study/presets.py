"""Define the presets: named groups of settings, such as `quick`, that determine how much evidence
a study collects (docs/explanation/search.md)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """Length of a window without its settling time, and how often Perseus evaluates the window.

    A window ends when the tenant with the lowest rate has sent `requests` requests, and at the
    latest after `max_s` seconds. Only windows of slow models may last longer
    (`perseus.peak.durations`). Perseus computes the verdict at `looks` evenly spaced times. If the
    verdict is `pass` or `fail`, the window ends at once.
    """

    requests: int
    max_s: float
    looks: int


@dataclass(frozen=True)
class SearchSettings:
    """Settings that determine how much evidence a search collects."""

    warm_up_s: float  # longest warm-up window, at least 6 s; a search has at most two such windows
    confidence: float  # one-sided confidence of a window's verdict, valid for all `looks` together
    settle_slas: float  # settling time of a window, in multiples of the largest latency limit
    coarse: Effort
    near_limit: Effort
    certify: Effort
    slow_certify_s: float  # longest certification window of a slow model
    near_limit_windows: int
    certify_windows: int  # number of windows at a rate; all must pass to certify the rate
    ratio: float  # bisection ends if lowest failed load / highest passed load <= ratio
    rounds: int  # largest number of rounds: saturate with each tenant alone, and with all together
    ratio_within: float  # required half-width of the sharing ratio; rounds end below 0.3 x this
    max_windows: int = 16  # largest number of different loads in bracketing and bisection


@dataclass(frozen=True)
class Preset:
    """The settings of a search, and how many times Perseus repeats the search."""

    settings: SearchSettings
    repeats: int


PRESETS = {
    # This preset only tests that the pipeline works: its results are no evidence.
    "smoke": Preset(
        SearchSettings(
            warm_up_s=5,
            confidence=0.9,
            settle_slas=10,
            coarse=Effort(requests=300, max_s=1, looks=1),
            near_limit=Effort(requests=400, max_s=1, looks=1),
            certify=Effort(requests=400, max_s=2, looks=1),
            slow_certify_s=2,
            near_limit_windows=2,
            certify_windows=1,
            ratio=1.6,  # so large that bisection ends at once
            rounds=1,
            ratio_within=0.1,
        ),
        repeats=1,
    ),
    "quick": Preset(
        SearchSettings(
            warm_up_s=20,
            confidence=0.9,
            settle_slas=10,
            coarse=Effort(requests=1000, max_s=2.5, looks=2),
            near_limit=Effort(requests=2000, max_s=5, looks=1),
            certify=Effort(requests=4000, max_s=16, looks=2),
            slow_certify_s=120,
            near_limit_windows=3,
            certify_windows=1,
            ratio=1.25,
            rounds=2,
            ratio_within=0.05,
        ),
        repeats=1,
    ),
    "standard": Preset(
        SearchSettings(
            warm_up_s=60,
            confidence=0.95,
            settle_slas=20,
            coarse=Effort(requests=4000, max_s=20, looks=4),
            near_limit=Effort(requests=8000, max_s=40, looks=1),
            certify=Effort(requests=20000, max_s=90, looks=3),
            slow_certify_s=120,
            near_limit_windows=6,
            certify_windows=1,
            ratio=1.15,
            rounds=8,
            ratio_within=0.04,
        ),
        repeats=3,
    ),
    "publication": Preset(
        SearchSettings(
            warm_up_s=120,
            confidence=0.99,
            settle_slas=20,
            coarse=Effort(requests=8000, max_s=40, looks=4),
            near_limit=Effort(requests=20000, max_s=120, looks=1),
            certify=Effort(requests=40000, max_s=300, looks=3),
            slow_certify_s=300,
            near_limit_windows=6,
            certify_windows=2,
            ratio=1.15,
            rounds=16,
            ratio_within=0.03,
        ),
        repeats=5,
    ),
}
