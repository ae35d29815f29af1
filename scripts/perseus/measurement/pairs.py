"""Determine the order of windows with one tenant and windows with two tenants.

Perseus compares each window with two tenants to the windows directly before and after it.
"""

from __future__ import annotations

import numpy as np

Step = tuple[int, ...]
"""Indices of the tenants that have load in one window."""


def all_pairs(tenants: int, rng: np.random.Generator) -> list[Step]:
    """Return the windows of one round with all pairs of tenants, in random order: (a,), (a,), (a,
    b), (b,), (b,), (b, c), (c,), …

    The round contains one window of each pair, directly between a window of the first tenant alone
    and a window of the second tenant alone. The first window of each tenant alone is repeated at
    once. For n tenants, a round has n² + n // 2 windows.
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
    """Return paths over the places 0 to n - 1, for n = `places`. Each pair of places is adjacent
    exactly once in all paths together.

    The construction is Walecki's (B. Alspach, Bulletin of the ICA 52, 2008). If n is even, the
    first path is 0, 1, -1, 2, -2, … (modulo n), and each of the n / 2 paths is the previous path
    plus 1 (modulo n). If n is odd, these paths are built for n - 1 places, and the last place is
    added at the start and at the end of each path.
    """
    even = places - places % 2
    hub = [even] if places % 2 else []
    zigzag = [(step + 1) // 2 * (1 if step % 2 else -1) for step in range(even)]
    turned = ([(turn + step) % even for step in zigzag] for turn in range(even // 2))
    return [[*hub, *path, *hub] for path in turned]
