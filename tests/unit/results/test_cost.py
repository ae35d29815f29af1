"""Savings of a known truth: intervals cover it, chance finds nothing, fleets are minimal."""

import itertools

import numpy as np
import pytest
import synthetic

from perseus.results import cost
from perseus.results import repeats as lines
from perseus.results import tables

STUDIES = 100


def study(seed, gain, repeats=3, between=0.02, within=0.02):
    """The savings of all lines of a synthetic study."""
    truth = synthetic.Truth(synthetic.TRUTH.capacities, gain, between, within, repeats)
    found = lines.group(synthetic.records(truth, seed), seed=seed, draws=1000)
    shared = [line for line in found if not line.is_dedicated]
    return cost.savings(shared, lines.dedicated(found, shared[0]))


@pytest.fixture(scope="module")
def gaining():
    return [study(seed, gain=1.25) for seed in range(STUDIES)]


@pytest.fixture(scope="module")
def equal():
    """A/A: sharing changes nothing."""
    return [study(seed, gain=1.0) for seed in range(STUDIES, 2 * STUDIES)]


def tables_of(made, settings=synthetic.SETTINGS):
    return tables.make(tables.Raw(made, [[] for _ in made]), settings)


def test_the_interval_covers_the_true_saving(gaining):
    truth = 1 - 1 / 1.25
    covered = [s.fractional.low <= truth <= s.fractional.high for made in gaining for s in made]
    assert 0.9 <= np.mean(covered) <= 0.995


def test_a_real_saving_is_seen(gaining):
    assert all(s.fractional.low > 0 for made in gaining for s in made)
    assert all(s.probability > 0.999 for made in gaining for s in made)


def test_without_a_saving_most_studies_say_so(equal):
    """Of 95 % intervals about 2.5 % lie above 0 by chance, and P(S > 0) is spread evenly."""
    above = [s.fractional.low > 0 for made in equal for s in made]
    assert np.mean(above) <= 0.06
    sure = [s.probability > 0.975 for made in equal for s in made]
    assert np.mean(sure) <= 0.06
    assert 0.3 < np.mean([s.probability for made in equal for s in made]) < 0.7


def test_picking_the_best_line_needs_the_correction(equal):
    best = [max(made, key=lambda s: s.fractional.value) for made in equal]
    naive = np.mean([s.fractional.low > 0 for s in best])
    corrected = np.mean([s.simultaneous.low > 0 for s in best])
    assert corrected <= 0.05
    assert corrected <= naive


def test_all_lines_at_once_are_covered(gaining):
    truth = 1 - 1 / 1.25
    together = [all(s.simultaneous.low <= truth <= s.simultaneous.high for s in made)
                for made in gaining]  # fmt: skip
    assert np.mean(together) >= 0.9


def test_correcting_a_single_line_changes_nothing():
    draws = np.random.default_rng(1).normal(size=(1, 4000))
    assert cost.simultaneous_tail(draws) == pytest.approx(0.025, abs=0.001)


def test_correcting_independent_lines_is_like_sidak():
    draws = np.random.default_rng(1).normal(size=(5, 20000))
    assert 2 * cost.simultaneous_tail(draws) == pytest.approx(1 - 0.95 ** (1 / 5), rel=0.1)


def test_a_missing_dedicated_peak_leaves_nothing_to_compare():
    made = synthetic.records()
    made[:2] = [synthetic.spoil(r, "infeasible", "too slow") for r in made[:2]]
    rows = tables_of(made)["savings"].to_pylist()
    assert len(rows) == 5
    assert all(row["saving"] is None and row["shared_servers"] is None for row in rows)
    assert rows[0]["reason"] == "no dedicated peak of resnet18"


def test_a_million_inferences():
    """1 USD/h at 1000/3.6 requests/s: a million an hour."""
    assert cost.usd_per_million(1.0, 1e6 / 3600) == pytest.approx(1.0)


def test_an_inference_is_an_image_however_many_a_request_carries():
    """Of two tenants the first asks with four images in each request."""
    one, four = synthetic.records(), synthetic.records()
    for record in four:
        for tenant in record["cell"]["tenants"]:
            tenant["request_batch_size"] = 4 if tenant["name"] == "resnet18" else 1
    with synthetic.few_fleet_draws():
        found = [tables_of(made) for made in (one, four)]
    usd, cheaper = (
        each["costs"].to_pandas().query("pricing == 'on_demand'").set_index("load_line")
        for each in found
    )
    assert list(usd.index) == list(cheaper.index)
    for key in ("usd_per_million_inferences", "usd_per_million_certified", "ci_low_usd"):
        factor = dict(zip(usd["models"], usd[key] / cheaper[key], strict=True))
        assert factor["resnet18"] == pytest.approx(4)
        assert all(value == 1 for name, value in factor.items() if "resnet18" not in name)
        assert all(1 < value < 4 for name, value in factor.items() if "resnet18 +" in name)
    assert found[0]["savings"].equals(found[1]["savings"])


def test_saving_and_costs_agree():
    made = synthetic.records()
    with synthetic.few_fleet_draws():
        found = tables_of(made)
    costs = found["costs"].to_pandas().query("kind != 'dedicated' and pricing == 'on_demand'")
    saved = 1 - costs["usd_per_million_inferences"] / costs["dedicated_usd_per_million"]
    np.testing.assert_allclose(saved, found["savings"].to_pandas()["saving"])


def test_a_server_without_a_spot_price_has_no_spot_rows():
    prices = {"cpu1": synthetic.PRICE | {"spot_usd_per_hour": None}}
    made = synthetic.records()[:4]
    rows = tables_of(made, synthetic.SETTINGS | {"prices": prices})["costs"]
    assert set(rows["pricing"].to_pylist()) == {"on_demand"}


def brute_force(rates, demand, most=7):
    counts = itertools.product(range(most), repeat=rates.shape[1])
    return min(sum(n) for n in counts if (rates @ np.array(n) >= demand - 1e-6).all())


def test_the_packing_is_optimal():
    rng = np.random.default_rng(3)
    for _ in range(8):
        rates = np.column_stack([rng.uniform(2, 9, (2, 2)), np.diag(rng.uniform(10, 15, 2))])
        demand = rng.uniform(15, 45, 2)
        assert cost.pack(rates, demand).sum() == brute_force(rates, demand)


def test_fleets_of_a_known_gain():
    """At gain 2 a shared server replaces two: ten servers' worth takes five."""
    truth = synthetic.Truth({"a": 10.0, "b": 40.0}, gain=2.0, between=0, within=1e-9)
    found = lines.group(synthetic.records(truth, mixes=[(1, 1)], holds=()), seed=1)
    made = cost.fleet(found[2], found[2:], found[:2])
    np.testing.assert_allclose(made.demand_rps, [50, 200], rtol=1e-6)
    assert (made.dedicated_servers, made.shared_servers, made.counts) == (10, 5, (5, 0, 0))
    assert made.saving.value == 0.5


def test_a_hair_over_a_whole_server_is_not_one_more():
    assert cost.servers_needed(np.array([50.0000000001]), [10.0]) == 5
    assert cost.servers_needed(np.array([50.1]), [10.0]) == 6


def test_an_impossible_demand_is_refused():
    with pytest.raises(ValueError, match="no fleet meets the demand"):
        cost.pack(np.array([[1.0], [0.0]]), np.array([1.0, 1.0]))
