"""A load line: request rates of all tenants that rise together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LoadLine:
    """Request rates r(s) = base + s x direction in requests/s, one entry per tenant."""

    base_rps: tuple[float, ...]
    direction_rps: tuple[float, ...]

    def rates_rps(self, scale: float) -> tuple[float, ...]:
        pairs = zip(self.base_rps, self.direction_rps, strict=True)
        return tuple(base + scale * step for base, step in pairs)
