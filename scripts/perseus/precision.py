"""Precision presets: how much evidence a study collects (documented in docs/method.md)."""

from __future__ import annotations

from dataclasses import dataclass

from perseus.settings import Effort, Settings


@dataclass(frozen=True)
class Preset:
    """Search settings and the number of independent repeats."""

    settings: Settings
    repeats: int


PRESETS = {
    # Shows that everything works; its figures mean little.
    "smoke": Preset(
        Settings(
            warm_up_s=5,
            confidence=0.9,
            settle_slas=10,
            coarse=Effort(requests=300, max_s=1, looks=1),
            root=Effort(requests=600, max_s=1.5, looks=1),
            confirm=Effort(requests=400, max_s=3, looks=1),
            root_windows=2,
            confirmations=1,
            ratio=1.4,
        ),
        repeats=1,
    ),
    "quick": Preset(
        Settings(
            warm_up_s=20,
            confidence=0.9,
            settle_slas=10,
            coarse=Effort(requests=1000, max_s=2.5, looks=2),
            root=Effort(requests=2000, max_s=5, looks=1),
            confirm=Effort(requests=4000, max_s=16, looks=1),
            root_windows=3,
            confirmations=1,
            ratio=1.25,
        ),
        repeats=1,
    ),
    "standard": Preset(
        Settings(
            warm_up_s=60,
            confidence=0.95,
            settle_slas=20,
            coarse=Effort(requests=4000, max_s=20, looks=4),
            root=Effort(requests=8000, max_s=40, looks=1),
            confirm=Effort(requests=20000, max_s=90, looks=3),
            root_windows=6,
            confirmations=1,
            ratio=1.15,
        ),
        repeats=3,
    ),
    "publication": Preset(
        Settings(
            warm_up_s=120,
            confidence=0.99,
            settle_slas=20,
            coarse=Effort(requests=8000, max_s=40, looks=4),
            root=Effort(requests=20000, max_s=120, looks=1),
            confirm=Effort(requests=40000, max_s=300, looks=3),
            root_windows=6,
            confirmations=2,
            ratio=1.15,
        ),
        repeats=5,
    ),
}
