"""Determine the order of windows with one tenant and windows with two tenants, so that Perseus can
compare each window with two tenants to the windows directly before and after it."""

from __future__ import annotations

import numpy as np

Step = tuple[int, ...]
"""Indices of the tenants that have load in one window."""


def all_pairs(tenants: int, rng: np.random.Generator) -> list[Step]:
    """Return the windows of one round with all pairs of tenants, in random order: (a,), (a,), (a,
    b), (b,), (b,), (b, c), (c,), …

    The round contains one window of each pair, directly between a window of the first tenant alone
    and a window of the second tenant alone. Where a tenant is alone for the first time in a round,
    two windows of this tenant alone follow each other. For n tenants, a round has n² + n // 2
    windows.
    """
    order, met, steps = rng.permutation(tenants).tolist(), set[int](), list[Step]()
    for path in paths(tenants):
        before: Step = ()
        for tenant in (order[place] for place in path):
            if before:
                steps.append((*before, tenant))
            before = (tenant,)
            steps += [before] if tenant in met else [before, before]
            met.add(tenant)
    return steps


def paths(places: int) -> list[list[int]]:
    """Return paths over n = `places` places, which are the integers from 0 to n - 1. Each pair of
    places is adjacent exactly once in all paths together.

    The construction is Walecki's (B. Alspach, Bulletin of the ICA 52, 2008). If n is even, the
    paths are n / 2 zigzags, each shifted by one place from the previous zigzag. If n is odd, the
    zigzags omit the last place, and each path begins and ends at the last place.
    """
    even = places - places % 2
    hub = [even] if places % 2 else []
    zigzag = [(step + 1) // 2 * (1 if step % 2 else -1) for step in range(even)]
    turned = ([(turn + step) % even for step in zigzag] for turn in range(even // 2))
    return [[*hub, *path, *hub] for path in turned]
