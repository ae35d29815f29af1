"""Compute the load line of a search. A load line gives the request rates of all tenants for each
load factor (docs/explanation/load.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perseus.study.experiments.peak import Run

START_SHARE = 0.8
"""First load of the search on a shared server, as a share of the load at which the sum of rate /
dedicated peak over the tenants is 1."""

MIN_REMAINING_SHARE = 0.1
"""If the background load leaves less than this share of the server free, the first load of the
search is computed as if this share were free."""

DEDICATED_START_SHARE = 0.6
"""First rate of the search on a dedicated server, as a share of the rate at which the server
answers single requests one after another."""


@dataclass(frozen=True)
class LoadLine:
    """The request rates r(s) = base + s x direction, where s is the load factor. Base and direction
    have one entry per tenant."""

    base_rps: tuple[float, ...]
    direction_rps: tuple[float, ...]

    def rates_rps(self, scale: float) -> tuple[float, ...]:
        pairs = zip(self.base_rps, self.direction_rps, strict=True)
        return tuple(base + scale * step for base, step in pairs)


def load_line(
    run: Run,
    names: Sequence[str],
    dedicated_rps: Mapping[str, float],
    unloaded_p50_ms: Mapping[str, float],
) -> tuple[LoadLine, float]:
    """Return the load line that `run` describes, and the load factor at which the search starts.

    On a dedicated server, the load factor s is the rate in requests/s. On a shared server, s is the
    sum of rate / dedicated peak over all tenants without background load.
    """
    if run.line == "dedicated":
        served_alone_rps = 1000 / unloaded_p50_ms[names[0]]
        return LoadLine((0.0,), (1.0,)), DEDICATED_START_SHARE * served_alone_rps
    if run.rate_shares:
        return _rates(run.rate_shares, names, dedicated_rps), START_SHARE
    if run.line == "mix":
        return _mix(run, names, dedicated_rps), START_SHARE
    line = _hold(run, names, dedicated_rps)
    background_share = sum(
        base / dedicated_rps[n] for base, n in zip(line.base_rps, names, strict=True)
    )
    return line, START_SHARE * max(1 - background_share, MIN_REMAINING_SHARE)


def weights_along(rates: Sequence[float], dedicated_rps: Sequence[float]) -> tuple[int, ...]:
    """Return the weights of the mix whose request rates have the ratio of `rates`.

    The weight of a tenant is its rate / dedicated peak, in whole percent of the sum over all
    tenants, and at least 1. If a dedicated peak is unknown, the result is empty.
    """
    servers = [rate / peak_rps for rate, peak_rps in zip(rates, dedicated_rps, strict=True)]
    if not all(map(math.isfinite, servers)):
        return ()
    return tuple(max(1, round(100 * part / sum(servers))) for part in servers)


def _mix(run: Run, names: Sequence[str], dedicated_rps: Mapping[str, float]) -> LoadLine:
    total = sum(run.weights)
    shares = [weight / total for weight in run.weights]
    # A tenant outside the mix may have no known dedicated peak.
    pairs = zip(shares, names, strict=True)
    direction = tuple(share * dedicated_rps[name] if share else 0.0 for share, name in pairs)
    return LoadLine((0.0,) * len(names), direction)


def _rates(
    shares: Sequence[float], names: Sequence[str], dedicated_rps: Mapping[str, float]
) -> LoadLine:
    servers = sum(share / dedicated_rps[name] for share, name in zip(shares, names, strict=True))
    return LoadLine((0.0,) * len(names), tuple(share / servers for share in shares))


def _hold(run: Run, names: Sequence[str], dedicated_rps: Mapping[str, float]) -> LoadLine:
    background_rps = run.background_rps(names, dedicated_rps)
    rising = len(names) - len(background_rps)
    base = tuple(background_rps.get(n, 0.0) for n in names)
    direction = tuple(0.0 if n in background_rps else dedicated_rps[n] / rising for n in names)
    return LoadLine(base, direction)
