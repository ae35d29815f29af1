"""Order of single tenants and pairs in which windows that are compared are neighbours."""

from __future__ import annotations

import numpy as np

Step = tuple[int, ...]
"""The numbers of the tenants that one window loads."""


def all_pairs(tenants: int, rng: np.random.Generator) -> list[Step]:
    """One round of all pairs, in random order: (a,), (a,), (a, b), (b,), (b,), (b, c), (c,), …

    Each pair has one step, between steps of its two tenants alone; each tenant is once alone
    twice in a row. For n tenants, there are n² + n // 2 steps.
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
    """Return paths through all places in which each two places are neighbours once.

    These are Walecki's (B. Alspach, Bulletin of the ICA 52, 2008). For an even number n they are n
    / 2 zigzags, each the previous one shifted by one place. For an odd number, one more place
    closes each path to a circle.
    """
    even = places - places % 2
    hub = [even] if places % 2 else []
    zigzag = [(step + 1) // 2 * (1 if step % 2 else -1) for step in range(even)]
    turned = ([(turn + step) % even for step in zigzag] for turn in range(even // 2))
    return [[*hub, *path, *hub] for path in turned]
