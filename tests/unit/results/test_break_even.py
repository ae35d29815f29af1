"""Tests that the comparison of costs over a range of demands finds as many servers as the planner.

The comparison and the planner use the same headroom, and the same least number of servers with each
model.
"""

from itertools import combinations, pairwise

import numpy as np
import pytest
import synthetic
from synthetic import demand

from perseus.results.fleets import break_even, servers_needed
from perseus.results.fleets.break_even import Option, costs, demand_ranges, questions
from perseus.results.fleets.cheapest import NoFleetError, Offers, Wanted, cheapest
from perseus.results.fleets.operating_points import operating_points
from perseus.results.fleets.plans import offered, planned
from perseus.results.repeats import group
from perseus.study.tasks.tables import DemandLevel

A, B = "a", "b"
TRUTH = synthetic.Truth({A: 10.0, B: 40.0}, gain=1.3, between=0, within=1e-9, repeats=1)


def points(mixes=((1, 1), (3, 1))):
    records = synthetic.loaded(synthetic.records(TRUTH, mixes=mixes, holds=()))
    found = list(group(records, seed=0, draws=100).values())
    return operating_points(found, {"cpu1": synthetic.PRICE})


@pytest.mark.parametrize("most_ways", [servers_needed.MAX_WAYS, 0])
@pytest.mark.parametrize(
    "settings", [{}, {"headroom": 0.3}, {"min_servers": 3}, {"headroom": 0.1, "min_servers": 2}]
)
def test_the_servers_at_a_demand_are_those_of_the_plan_for_it(settings, most_ways, monkeypatch):
    monkeypatch.setattr(servers_needed, "MAX_WAYS", most_ways)
    asked, of = demand({A: 20.0, B: 50.0}, **settings), points()
    alone = [offer for offer in offered(of, spot=False) if not offer.point.is_shared]
    for cost in list(costs(of, asked))[::8]:
        rps = {A: cost.total_rps * 2 / 7, B: cost.total_rps * 5 / 7}
        level = DemandLevel(name="demand", rps=rps)
        offers = offered(of, spot=False) if cost.option.shared else alone
        plan = planned("", offers, level, asked, in_full=False)
        assert cost.servers == plan.servers


def test_draws_have_the_servers_of_each_model_that_are_asked_for():
    """One request per second needs three shared servers, or six servers with one model each."""
    found = costs(points(), demand({A: 1.0, B: 4.0}, min_servers=3))
    first = next(cost for cost in found if cost.option.shared)
    assert (first.servers, first.probability_of_saving) == (3, 1.0)
    rates = np.full((5, 2, 1), 10.0)
    found = servers_needed.needed_at_each(rates, np.array([0.5, 0.5]), [1.0, 90.0], 3, 0)
    assert (found == [3, 5]).all()


def test_rounding_does_not_decide_which_servers_are_extrapolated():
    """With 8, 16, 40 or 48 servers, the capacity per server is highest.

    For a demand of 1710.4 requests/s, 42 servers are the fewest servers that suffice.
    """
    rates, shares = np.array([[31.2, 0.0, 23.4], [0.0, 54.6, 15.6]]), np.array([0.5, 0.5])
    assert servers_needed._of_all_ways(rates[None], shares, 42, 1) > 1710.4
    assert servers_needed.needed(rates, shares, [1710.4]) == [42]


@pytest.mark.parametrize("lost", [{"cpu1": B}, {"cpu1": B, "cpu2": A}])
def test_shared_servers_are_known_though_no_server_has_every_dedicated_peak(lost):
    """Only cpu1 has a dedicated peak of A.

    In the second case, only a second server, cpu2, has a dedicated peak of B.
    """
    records = synthetic.records(TRUTH, mixes=((1, 1),), holds=())
    kept = [
        on(server, record)
        for server, model in lost.items()
        for record in records
        if [tenant["model"] for tenant in record["cell"]["tenants"]] != [model]
    ]
    found = group(synthetic.loaded(kept), seed=0, draws=100)
    of = operating_points(list(found.values()), dict.fromkeys(lost, synthetic.PRICE))
    made = list(costs(of, demand({A: 20.0, B: 80.0}, servers=tuple(lost))))
    assert {cost.option for cost in made} == {Option(server, True) for server in lost}
    assert made[0].total_rps == pytest.approx(made[-1].total_rps / 1000)
    assert made[0].servers == 1
    assert made[-1].servers > 1


def on(server, record):
    cell = record["cell"]
    names = {key: cell[key].replace("cpu1.", f"{server}.") for key in ("cell", "scenario")}
    return record | {"cell": cell | names | {"server": cell["server"] | {"name": server}}}


HUNDRED = np.hstack([np.eye(100), np.repeat(np.eye(100)[:, :1] + np.eye(100)[:, 1:2], 2, axis=1)])
"""Rate of each model on each server, shape (100 models, 102 servers): 100 servers with one model
each, and two servers with the first two models."""


def test_a_hundred_models_of_which_two_share_need_99_servers():
    """Each of the 100 models needs a server, also for the lower demand. One server can have two
    models."""
    shares = np.full(100, 0.01)
    assert servers_needed.needed(10 * HUNDRED, shares, [1.0, 1000.0]).tolist() == [99, 99]
    assert servers_needed.fewest(HUNDRED > 0, 2) == 198


def test_servers_of_many_load_lines_are_the_fewest_at_each_demand():
    """The solutions at some demands bound the solutions at the demands between them."""
    rng, models = np.random.default_rng(3), 6
    pairs = [np.eye(models)[i] + np.eye(models)[j] for i, j in combinations(range(models), 2)]
    rates = rng.uniform(20, 60, (models, 21)) * np.column_stack([np.eye(models), *pairs])
    shares, demands = rng.dirichlet(np.ones(models)), np.geomspace(1, 3000, 60)
    found = servers_needed.needed(rates, shares, demands.tolist())
    offers = Offers(rates, np.ones(21), np.zeros(21, bool))
    each = [cheapest(offers, Wanted(demand * shares)).counts.sum() for demand in demands]
    assert found.tolist() == each and found[0] == 3 and len(set(each)) > 12


@pytest.mark.parametrize("with_each", [1, 2, 20, 41])
def test_few_load_lines_with_several_servers_of_each_model_are_counted_to_the_last(with_each):
    """The result equals the solutions of integer programmes, even if a demand needs more servers
    than the full search tries."""
    rates, shares = np.array([[30.0, 0.0, 20.0], [0.0, 10.0, 8.0]]), np.array([0.5, 0.5])
    demands = [16.0, 600.0, 725.0, 735.0, 745.0, 770.0, 900.0]
    found = servers_needed.needed(rates, shares, demands, with_each)
    offers = Offers(rates, np.ones(3), np.zeros(3, bool))
    wanted = [Wanted(rps * shares, min_servers=with_each) for rps in demands]
    assert found.tolist() == [cheapest(offers, each).counts.sum() for each in wanted]


def test_sharing_never_takes_more_servers_than_one_model_each():
    """Two of the three models have 1 % of the demand each. A shared server carries only 20
    requests/s of each model."""
    shares = np.array([0.01, 0.01, 0.98])
    rates = np.hstack([np.diag([100.0] * 3), np.full((3, 1), 20.0)])
    demands = [3000.0, 4100.0, 6000.0, 8000.0, 10000.0]
    apart = servers_needed.needed_apart(rates, shares, demands)
    found = servers_needed.needed(rates, shares, demands)
    assert (found <= apart).all() and found[0] < apart[0]


def test_where_no_fleet_is_found_in_time_each_model_has_servers_of_its_own(monkeypatch):
    monkeypatch.setattr(servers_needed, "MAX_WAYS", 0)
    rates, shares = np.array([[30.0, 0.0, 20.0], [0.0, 10.0, 8.0]]), np.array([0.5, 0.5])
    assert servers_needed.needed(rates, shares, [16.0, 60.0]).tolist() == [1, 4]

    def none_in_time(*_):
        raise NoFleetError("time limit")

    monkeypatch.setattr(servers_needed, "cheapest", none_in_time)
    assert servers_needed.needed(rates, shares, [16.0, 60.0]).tolist() == [2, 4]


@pytest.mark.parametrize("all_s", [0.0, 60.0])
def test_demands_that_have_taken_their_time_are_hurried(all_s, monkeypatch):
    limits_s = []

    def noted(offers, wanted, gap, time_limit_s):
        limits_s.append(time_limit_s)
        return cheapest(offers, wanted, gap, time_limit_s)

    monkeypatch.setattr(servers_needed, "MAX_WAYS", 0)
    monkeypatch.setattr(servers_needed, "DEMANDS_S", all_s)
    monkeypatch.setattr(servers_needed, "cheapest", noted)
    rates, shares = np.array([[30.0, 0.0, 20.0], [0.0, 10.0, 8.0]]), np.array([0.5, 0.5])
    assert servers_needed.needed(rates, shares, [16.0, 60.0]).tolist() == [1, 4]
    assert set(limits_s) == {servers_needed.DEMAND_S if all_s else servers_needed.HURRIED_S}


def test_draws_of_more_models_than_can_be_told_of_are_not_made(monkeypatch):
    """At least two servers must have each of the three models. Two servers can be divided among
    four load lines in ten ways."""
    truth = synthetic.Truth({A: 10.0, B: 40.0, "c": 20.0}, repeats=1)
    records = synthetic.loaded(synthetic.records(truth, mixes=((1, 1, 1),), holds=()))
    found = list(group(records, seed=0, draws=100).values())
    of = operating_points(found, {"cpu1": synthetic.PRICE})
    asked = demand({A: 1.0, B: 4.0, "c": 2.0}, min_servers=2)
    assert costs_known(of, asked)
    monkeypatch.setattr(servers_needed, "MAX_WAYS", 9)
    sets = []

    def needed(rates_rps, *args, **named):
        sets.append(len(rates_rps))
        return servers_needed.needed_at_each(rates_rps, *args, **named)

    monkeypatch.setattr(break_even, "needed_at_each", needed)
    assert not costs_known(of, asked)
    assert sets == [2]  # at the lower limits and at the estimates


def costs_known(of, asked):
    shared = [cost for cost in costs(of, asked) if cost.option.shared]
    return not np.isnan(shared[0].probability_of_saving)


@pytest.mark.parametrize("mixes", [((1, 0), (1, 1)), ((1, 0), (0, 1))])
def test_each_question_is_asked_once(mixes):
    """Model `a` has a load line alone on a shared server, and dedicated peaks on two servers. Both
    lead to the same question."""
    made = synthetic.records(TRUTH, mixes=mixes, holds=())
    alone = [on("cpu2", record) for record in made if len(record["cell"]["tenants"]) == 1]
    found = group(synthetic.loaded([*made, *alone]), seed=0, draws=100)
    of = operating_points(list(found.values()), dict.fromkeys(("cpu1", "cpu2"), synthetic.PRICE))
    asked = [question.models for question in questions(of, None)]
    assert len(asked) == len(set(asked)) and set(asked) >= {(A,), (B,)}


def test_the_cheapest_servers_of_a_range_are_those_of_the_plan_also_without_a_reliable_saving():
    """The limits are uncertain, so in some ranges of demand sharing is cheapest, but the saving is
    not reliable."""
    truth = synthetic.Truth({A: 10.0, B: 40.0}, gain=0.9, between=0.1, within=0.1, repeats=2)
    found = group(
        synthetic.loaded(synthetic.records(truth, mixes=((1, 1), (2, 1)), holds=())),
        seed=0,
        draws=100,
    )
    of = operating_points(list(found.values()), {"cpu1": synthetic.PRICE})
    made = list(costs(of, None))
    ranges = list(demand_ranges(made))
    kinds = {(each.option.shared, each.is_reliable) for each in ranges}
    assert kinds == {(True, True), (True, False), (False, True)}
    for each in ranges:
        assert each.option.shared or each.most_saving == 0
        assert not each.option.shared or (each.least_saving > 0) >= each.is_reliable
    within = [
        (each, cost)
        for cost in made
        for each in ranges
        if each.first.total_rps <= cost.total_rps <= each.last.total_rps
    ]
    assert len(within) == len(made)
    for each, cost in within:
        if cost.option == each.option:
            same = [other for other in made if other.total_rps == cost.total_rps]
            assert cost.usd_per_hour == min(other.usd_per_hour for other in same)


def test_ranges_of_demand_meet_within_half_a_percent():
    ranges = list(demand_ranges(list(costs(points(), None))))
    gaps = [after.first.total_rps / before.last.total_rps for before, after in pairwise(ranges)]
    assert len(gaps) > 1 and max(gaps) < 1.005


def test_models_stand_in_the_order_of_the_configuration():
    truth = synthetic.Truth({B: 40.0, A: 10.0}, between=0, within=1e-9, repeats=1)
    found = group(
        synthetic.loaded(synthetic.records(truth, mixes=((1, 1),), holds=())), seed=0, draws=100
    )
    of = operating_points(list(found.values()), {"cpu1": synthetic.PRICE})
    assert [each.description for each in questions(of, None)] == ["b 80%, a 20%"]


@pytest.mark.parametrize(("capacity", "first", "last"), [(0.1, 0.001, 1.0), (500.0, 1.0, 5000.0)])
def test_demands_go_from_a_hardly_used_server_to_ten_full_ones(capacity, first, last):
    """The range begins at 1 % of the capacity of a server, but at most at 1 request/s."""
    truth = synthetic.Truth({A: capacity, B: capacity}, gain=0.2, within=1e-9, repeats=1, between=0)
    records = synthetic.loaded(synthetic.records(truth, mixes=((1, 1),), holds=()))
    found = list(group(records, seed=0, draws=100).values())
    of = operating_points(found, {"cpu1": synthetic.PRICE})
    made = [cost for cost in costs(of, None) if not cost.option.shared]
    assert made[0].total_rps == pytest.approx(first, rel=1e-6)
    assert made[-1].total_rps == pytest.approx(last, rel=1e-6)
    assert (made[0].servers, made[-1].servers) == (2, 10)
    few = next(demand_ranges(list(costs(of, None))))
    assert few.option.shared and few.first.total_rps == made[0].total_rps
