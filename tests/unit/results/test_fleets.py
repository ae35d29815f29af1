"""Fleets are the smallest that meet the demand."""

import itertools

import numpy as np
import pytest
import synthetic

from perseus.results.fleets import fleet, pack, servers_needed
from perseus.results.repeats import group
from perseus.results.tables.savings import SCHEMA


def brute_force(rates, demand, most=7):
    counts = itertools.product(range(most), repeat=rates.shape[1])
    return min(sum(n) for n in counts if (rates @ np.array(n) >= demand - 1e-6).all())


def test_the_packing_is_optimal():
    rng = np.random.default_rng(3)
    for _ in range(8):
        rates = np.column_stack([rng.uniform(2, 9, (2, 2)), np.diag(rng.uniform(10, 15, 2))])
        demand = rng.uniform(15, 45, 2)
        assert pack(rates, demand).sum() == brute_force(rates, demand)


def test_fleets_of_a_known_gain():
    """At gain 2 a shared server replaces two: ten servers' worth takes five."""
    truth = synthetic.Truth({"a": 10.0, "b": 40.0}, gain=2.0, between=0, within=1e-9)
    records = synthetic.loaded(synthetic.records(truth, mixes=[(1, 1)], holds=()))
    found = list(group(records, seed=1).values())
    made = fleet(found[2], found[2:], found[:2])
    np.testing.assert_allclose(made.demand_rps, [50, 200], rtol=1e-6)
    assert (made.dedicated_servers, made.shared_servers, made.counts) == (10, 5, (5, 0, 0))
    assert made.saving == 0.5


def test_whole_servers_at_a_multiple_of_a_capacity_have_no_interval():
    """Resampled capacities need one server more half of the time: an artefact, not a risk."""
    assert not [name for name in SCHEMA.names if name.startswith("fleet_ci")]


def test_a_hair_over_a_whole_server_is_not_one_more():
    assert servers_needed(np.array([50.0000000001]), [10.0]) == 5
    assert servers_needed(np.array([50.1]), [10.0]) == 6


def test_an_impossible_demand_is_refused():
    with pytest.raises(ValueError, match="no fleet meets the demand"):
        pack(np.array([[1.0], [0.0]]), np.array([1.0, 1.0]))
