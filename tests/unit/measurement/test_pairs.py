"""Tests of the order of the windows of a `slowdown` experiment: each pair of tenants once, between
windows of each tenant alone."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest

from perseus.measurement.pairs import all_pairs

SIZES = range(2, 14)


def steps_of(tenants, seed=0):
    return all_pairs(tenants, np.random.default_rng(seed))


@pytest.mark.parametrize("tenants", SIZES)
def test_every_pair_has_one_step_between_its_two_tenants_alone(tenants):
    steps = steps_of(tenants)
    pairs = [i for i, step in enumerate(steps) if len(step) == 2]
    assert Counter(frozenset(steps[i]) for i in pairs) == {
        frozenset(pair): 1 for pair in combinations(range(tenants), 2)
    }
    for i in pairs:
        assert steps[i - 1] == steps[i][:1] and steps[i + 1] == steps[i][1:]


@pytest.mark.parametrize("tenants", SIZES)
def test_every_tenant_is_alone_twice_in_a_row(tenants):
    """In each round, each tenant has two successive windows alone.

    If one path ends with a tenant and the next path begins with the same tenant, this tenant has
    two further successive windows alone.
    """
    again = Counter(first for first, second in pairwise(steps_of(tenants)) if first == second)
    assert set(again) == {(tenant,) for tenant in range(tenants)}
    assert sorted(again.values())[:-1] == [1] * (tenants - 1)


@pytest.mark.parametrize("tenants", SIZES)
def test_so_many_steps_are_a_round(tenants):
    assert len(steps_of(tenants)) == tenants**2 + tenants // 2


def test_the_order_is_drawn():
    assert steps_of(6) == steps_of(6)
    orders = [tuple(steps_of(6, seed)) for seed in range(20)]
    assert len(set(orders)) > 15
    assert len({order[0] for order in orders}) > 3
