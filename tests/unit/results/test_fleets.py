"""Tests that fleets are the cheapest that carry the demand, although capacities are uncertain."""

import itertools
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import synthetic
import synthetic_files
from synthetic import demand

from perseus.host.files import write_json
from perseus.report.conclusions import servers_to_buy
from perseus.results.columns import written
from perseus.results.fleets import demand_map, servers_needed
from perseus.results.fleets import plans as of_plans
from perseus.results.fleets.attainment import attained
from perseus.results.fleets.break_even import (
    Cost,
    Option,
    Question,
    costs,
    demand_ranges,
    questions,
)
from perseus.results.fleets.changes import changes
from perseus.results.fleets.cheapest import (
    GAP,
    OPTIMAL,
    NoFleetError,
    Offers,
    Wanted,
    cheapest,
    with_most_spare_capacity,
)
from perseus.results.fleets.columns import PROPORTION
from perseus.results.fleets.operating_points import operating_points
from perseus.results.fleets.plans import (
    DEDICATED,
    ONE_TYPE,
    SHARING,
    keeping,
    offered,
    planned,
    plans,
)
from perseus.results.repeats import group
from perseus.results.study_results import StudyResults
from perseus.results.tables import fleet_changes, fleets
from perseus.study.demand import Spot
from perseus.study.tasks.tables import DemandLevel

A, B = "a", "b"
EXACT = synthetic.Truth({A: 10.0, B: 40.0}, gain=2.0, between=0, within=1e-9, repeats=1)


def points(truth=EXACT, seed=0, mixes=((1, 1),), prices=None):
    records = synthetic.loaded(synthetic.records(truth, seed, mixes=mixes, holds=()))
    found = list(group(records, seed=seed, draws=400).values())
    return operating_points(found, prices or {"cpu1": synthetic.PRICE})


def by_strategy(made):
    return {plan.strategy: plan for plan in made}


# --- the integer programme ---


def brute_force(offers, wanted, most=6):
    best = np.inf
    for counts in itertools.product(range(most), repeat=offers.rates_rps.shape[1]):
        n = np.array(counts)
        carried = (1 - wanted.headroom) * offers.rates_rps
        enough = (carried @ n >= wanted.demand_rps - 1e-9).all()
        spread = (offers.hosts @ n >= wanted.min_servers).all()
        steady = (carried @ (n * ~offers.is_spot)) >= (1 - wanted.spot_share) * wanted.demand_rps
        if enough and spread and (steady.all() or not offers.is_spot.any()):
            best = min(best, float(offers.usd_per_hour @ n))
    return best


@pytest.mark.parametrize("seed", range(12))
def test_no_fleet_is_cheaper(seed):
    rng = np.random.default_rng(seed)
    rates = np.column_stack([rng.uniform(2, 9, (2, 2)), np.diag(rng.uniform(10, 15, 2))])
    offers = Offers(rates, rng.uniform(1, 3, 4), np.array([seed % 2 == 1, False, False, False]))
    wanted = Wanted(rng.uniform(5, 25, 2), 0.1 * (seed % 3), 1 + seed % 2, 0.5)
    found = cheapest(offers, wanted, gap=0)
    assert found.usd_per_hour == pytest.approx(brute_force(offers, wanted), rel=1e-9)
    assert found.gap <= 1e-6 and found.status == "optimal"


@pytest.mark.parametrize("best", [0, 1, 2])
def test_of_equally_cheap_fleets_the_one_with_most_to_spare(best):
    """Each of the three servers carries the demand alone.

    All servers have the same price, but one server carries twice as much as each of the others.
    """
    rates = np.full((1, 3), 10.0)
    rates[0, best] = 20.0
    offers = Offers(rates, np.ones(3), np.zeros(3, bool))
    wanted = Wanted(np.array([9.0]))
    found = with_most_spare_capacity(offers, wanted, cheapest(offers, wanted))
    assert np.flatnonzero(found.counts).tolist() == [best]
    assert found.usd_per_hour == 1


@pytest.mark.parametrize("scale", [1e-9, 1e-6, 1.0, 1e6])
def test_what_is_the_cheapest_does_not_depend_on_the_unit_of_money(scale):
    rates = np.array([[10.0, 0.0, 7.0, 3.0], [0.0, 40.0, 28.0, 35.0]])
    usd = np.array([1.0, 1.0, 1.1, 1.05])
    wanted = Wanted(np.array([95.0, 260.0]))
    offers = Offers(rates, scale * usd, np.zeros(4, bool))
    found = cheapest(offers, wanted)
    assert found.usd_per_hour == pytest.approx(13.8 * scale)
    assert found.gap <= GAP and found.status == OPTIMAL
    assert with_most_spare_capacity(offers, wanted, found).usd_per_hour == pytest.approx(
        13.8 * scale
    )


def test_servers_that_cost_nothing_carry_a_demand():
    found = cheapest(Offers(np.array([[10.0]]), np.zeros(1), np.zeros(1, bool)), Wanted(np.ones(1)))
    assert found.counts.tolist() == [1] and found.usd_per_hour == 0


def test_a_demand_that_nobody_carries_is_refused():
    offers = Offers(np.array([[1.0], [0.0]]), np.ones(1), np.zeros(1, bool))
    with pytest.raises(NoFleetError):
        cheapest(offers, Wanted(np.array([1.0, 1.0])))


def test_a_hair_over_a_whole_server_is_not_one_more():
    offers = Offers(np.array([[10.0]]), np.ones(1), np.zeros(1, bool))
    assert cheapest(offers, Wanted(np.array([50.0000000001]))).counts.tolist() == [5]
    assert cheapest(offers, Wanted(np.array([50.1]))).counts.tolist() == [6]


def test_a_thousand_models_are_planned_with_a_stated_gap():
    rng = np.random.default_rng(0)
    count = 1000
    alone = np.diag(rng.uniform(20, 400, count))
    pairs = np.zeros((count, count))
    for column, (i, j) in enumerate(rng.integers(0, count, (count, 2))):
        pairs[[i, j], column] = rng.uniform(0.4, 0.7, 2) * alone[[i, j], [i, j]]
    offers = Offers(np.hstack([alone, pairs]), np.ones(2 * count), np.zeros(2 * count, bool))
    wanted = Wanted(rng.lognormal(2, 1, count))
    found = cheapest(offers, wanted, time_limit_s=20)
    assert found.gap < 0.02
    assert (found.status == "optimal") == (found.gap <= GAP)
    assert (offers.rates_rps @ found.counts >= wanted.demand_rps * (1 - 1e-6)).all()
    assert found.usd_per_hour < np.ceil(wanted.demand_rps / np.diag(alone)).sum()


# --- plans ---


def test_a_known_gain_of_two_halves_the_fleet():
    made = by_strategy(plans(points(), demand({A: 50.0, B: 200.0})))
    assert made[DEDICATED].counts == (5, 5)
    assert made[SHARING].servers == 5
    assert made[SHARING].usd_per_month == pytest.approx(5 * 0.0475 * 730)
    assert ONE_TYPE not in made  # there is only one type
    loads = [made[SHARING].load_rps(offer, A) for _, offer in made[SHARING].chosen]
    assert loads == pytest.approx([10.0])


def test_dedicated_servers_are_the_plan_if_none_with_sharing_was_found_in_time(monkeypatch):
    def late(offers, wanted):
        if len(offers.usd_per_hour) > 2:
            raise NoFleetError("the solver found no fleet in time")
        return cheapest(offers, wanted)

    monkeypatch.setattr(of_plans, "cheapest", late)
    made = by_strategy(plans(points(), demand({A: 50.0, B: 200.0})))
    assert made[SHARING].counts == made[DEDICATED].counts == (5, 5)
    assert made[SHARING].usd_per_hour == made[DEDICATED].usd_per_hour
    assert made[SHARING].description == made[DEDICATED].description


def test_at_equal_cost_no_server_is_shared():
    """Perseus chooses the dedicated fleet, although the shared fleet has more headroom."""
    rich = synthetic.Truth(EXACT.capacities, gain=1.3, between=0, within=1e-9, repeats=1)
    made = by_strategy(plans(points(rich), demand({A: 9.5, B: 38.0})))
    assert made[DEDICATED].servers == made[SHARING].servers == 2
    assert {offer.point.is_shared for _, offer in made[SHARING].chosen} == {False}


def test_at_equal_cost_no_server_of_one_type_or_after_a_change_is_shared():
    """Two types of servers carry the same load, and one of the types costs twice as much.

    At a sharing ratio of 1, full shared servers cost as much as full dedicated servers.
    """
    rich = synthetic.Truth(EXACT.capacities, gain=1.0, between=0, within=1e-9, repeats=1)
    made = synthetic.records(rich, mixes=((1, 1), (3, 1)), holds=())
    found = group(synthetic.loaded([*made, *(_moved(each, "cpu2") for each in made)]), seed=0)
    dear = synthetic.PRICE.model_copy(update={"on_demand_usd_per_hour": 0.095})
    of = operating_points(list(found.values()), {"cpu1": synthetic.PRICE, "cpu2": dear})
    asked = demand({A: 9.5, B: 38.0}, servers=("cpu1", "cpu2"))
    planned = by_strategy(plans(of, asked))
    changed = list(changes(planned.values(), asked))
    alone = {(c.server, c.factor): c.plan for c in changed if c.plan.strategy == DEDICATED}
    compared = [(planned[ONE_TYPE], planned[DEDICATED])] + [
        (c.plan, alone[c.server, c.factor])
        for c in changed
        if c.plan.strategy == SHARING and not c.keeps_servers
    ]
    for plan, dedicated in compared:
        is_cheaper = plan.usd_per_hour < dedicated.usd_per_hour * (1 - 1e-9)
        assert any(offer.point.is_shared for _, offer in plan.chosen) == is_cheaper


def test_small_demands_share_one_server_whatever_the_gain():
    poor = synthetic.Truth(EXACT.capacities, gain=0.6, between=0, within=1e-9, repeats=1)
    made = by_strategy(plans(points(poor), demand({A: 1.0, B: 4.0})))
    assert (made[DEDICATED].servers, made[SHARING].servers) == (2, 1)


def test_headroom_zones_and_models_without_demand():
    of = points()
    assert by_strategy(plans(of, demand({A: 50.0}, headroom=0.2)))[DEDICATED].servers == 7
    assert by_strategy(plans(of, demand({A: 1.0}, min_servers=3)))[DEDICATED].servers == 3
    rich = synthetic.Truth(EXACT.capacities, gain=4.0, between=0, within=1e-9, repeats=1)
    only_a = by_strategy(plans(points(rich), demand({A: 50.0, B: 0.0})))
    assert only_a[SHARING].description == "5 x (a)"  # servers that also have b do not count


@pytest.mark.parametrize(
    ("rps", "words"),
    [
        (12345.0, "12345"),
        (12345.6, "12346"),
        (390.0, "390"),
        (59.4961, "59.5"),
        (1 / 3, "0.3333"),
        (1.23456e-5, "0.00001235"),
        (0.0, "0"),
    ],
)
def test_rates_are_written_without_exponents_and_whole_to_the_last_digit(rps, words):
    assert written(rps) == words


UNKNOWN = (
    "none of the permitted servers has both a price and a known lower limit of its capacity for {}"
)


def test_what_cannot_be_carried_is_said():
    (alone, *_) = plans(points(), demand({A: 5.0, "c": 1.0}))
    assert alone.why_not == UNKNOWN.format("c")
    assert not alone.counts
    assert np.isnan(alone.probability_enough)


def test_spot_servers_carry_their_share_and_no_more():
    asked = demand({A: 100.0}, spot=Spot(largest_share=0.5, revocations_per_hour=0.1))
    made = by_strategy(plans(points(), asked))[DEDICATED]
    counts = {offer.pricing: count for count, offer in made.chosen}
    assert counts == {"on_demand": 5, "spot": 5}
    assert made.spot_share(A) == pytest.approx(0.5)


@pytest.mark.parametrize("largest", [0.3, 0.45])
def test_spot_servers_get_no_more_than_their_share_where_they_could_carry_more(largest):
    """Twelve requests/s need one on-demand server and one spot server with the same capacity."""
    asked = demand({A: 12.0}, spot=Spot(largest_share=largest, revocations_per_hour=0.1))
    made = by_strategy(plans(points(), asked))[DEDICATED]
    counts = {offer.pricing: count for count, offer in made.chosen}
    assert counts == {"on_demand": 1, "spot": 1}
    assert made.spot_share(A) == pytest.approx(largest)
    loads = {offer.pricing: made.load_rps(offer, A) for _, offer in made.chosen}
    assert loads == pytest.approx({"on_demand": 12 * (1 - largest), "spot": 12 * largest})


def test_costs_if_capacities_were_known_are_left_out_where_a_draw_has_no_fleet(monkeypatch):
    truth = synthetic.Truth({A: 10.0, B: 40.0}, between=0, within=0.05, repeats=1)
    calls = itertools.count()

    def no_fleet_at_last(*asked):
        if next(calls) == 50:
            raise NoFleetError("time is over")
        return cheapest(*asked)

    monkeypatch.setattr(of_plans, "cheapest", no_fleet_at_last)
    wanted = demand({A: 50.0})
    offers = offered(points(truth, mixes=()), spot=False)
    made = planned(DEDICATED, offers, wanted.levels[0], wanted)
    assert made.servers == 6 and not len(made.usd_draws)


def test_of_two_types_the_cheaper_is_bought():
    cheap = synthetic.PRICE.model_copy(update={"on_demand_usd_per_hour": 0.01})
    records = [*synthetic.records(EXACT, mixes=(), holds=())]
    moved = [_moved(record, "cpu2") for record in records]
    found = group(synthetic.loaded([*records, *moved]), seed=1, draws=100)
    of = operating_points(list(found.values()), {"cpu1": synthetic.PRICE, "cpu2": cheap})
    made = by_strategy(plans(of, demand({A: 30.0}, servers=("cpu1", "cpu2"))))
    assert made[DEDICATED].description == "3 x (a on cpu2)"
    assert made[ONE_TYPE].usd_per_hour == pytest.approx(0.03)
    only = by_strategy(plans(of, demand({A: 30.0}, servers=("cpu1",))))
    assert only[DEDICATED].description == "3 x (a)"


def test_each_type_of_server_has_a_reason_where_no_type_carries_all_models():
    """Only a was measured on cpu1, and only b on cpu2."""
    made = synthetic.records(EXACT, mixes=(), holds=())
    of_a = [each for each in made if each["cell"]["scenario"] == "cpu1.a"]
    of_b = [_moved(each, "cpu2") for each in made if each["cell"]["scenario"] == "cpu1.b"]
    found = list(group(synthetic.loaded([*of_a, *of_b]), seed=0, draws=100).values())
    of = operating_points(found, dict.fromkeys(("cpu1", "cpu2"), synthetic.PRICE))
    made = by_strategy(plans(of, demand({A: 5.0, B: 20.0}, servers=("cpu1", "cpu2"))))
    assert made[DEDICATED].servers == 2
    reasons = f"cpu1: {UNKNOWN.format(B)}; cpu2: {UNKNOWN.format(A)}"
    assert made[ONE_TYPE].why_not == f"no single type of server carries the demand ({reasons})"


def test_of_one_type_no_fleet_of_one_type_is_looked_for(monkeypatch):
    """All servers have the same type, so Perseus plans no separate fleet of one type."""
    solved = []

    def planned(strategy, offers, level, _):
        solved.append(strategy)
        return of_plans.Plan(level, strategy, tuple(offers), 0.0)

    monkeypatch.setattr(of_plans, "planned", planned)
    plans(points(), demand({A: 30.0}))
    assert solved == [DEDICATED, SHARING]


def _moved(record, server):
    cell = record["cell"]
    names = {key: cell[key].replace("cpu1.", f"{server}.") for key in ("cell", "scenario")}
    return record | {"cell": cell | names | {"server": cell["server"] | {"name": server}}}


def test_plans_carry_the_demand_although_capacities_are_not_known():
    """Because of the noise of the measurements, the true capacities are unknown."""
    truth = synthetic.Truth({A: 10.0, B: 40.0}, between=0, within=0.08, repeats=1)
    asked = {A: 50.1, B: 200.4}  # with known capacities, six servers of each model
    enough = 0
    for seed in range(60):
        offers, wanted = offered(points(truth, seed, mixes=()), spot=False), demand(asked)
        made = planned(DEDICATED, offers, wanted.levels[0], wanted, in_full=False)
        chosen = {offer.point.models[0]: count for count, offer in made.chosen}
        enough += all(chosen[m] * truth.capacities[m] >= rps for m, rps in asked.items())
        assert made.probability_enough >= 0.88
    assert enough >= 0.85 * 60  # 0.95 for each of the two models


def test_costs_if_capacities_were_known_are_drawn_together():
    truth = synthetic.Truth({A: 10.0, B: 40.0}, gain=1.3, between=0, within=0.05, repeats=1)
    made = by_strategy(plans(points(truth), demand({A: 50.0, B: 200.0})))
    assert len(made[SHARING].usd_draws) == len(made[DEDICATED].usd_draws) == 100
    assert (made[SHARING].usd_draws <= made[DEDICATED].usd_draws + 1e-12).all()


@pytest.mark.parametrize(("line", "reliable"), [("", True), ("peak", False), ("mix-1-1", True)])
def test_no_probability_of_a_saving_where_a_capacity_has_no_upper_limit(line, reliable):
    """The client was too slow for one repeat, so the capacity may be higher in this repeat."""
    truth = synthetic.Truth({A: 10.0, B: 40.0}, gain=2.0, between=0, within=0.01, repeats=2)
    made = synthetic.records(truth, mixes=((1, 1),), holds=())
    of = points_of(synthetic.with_lost(made, line, "client_limited"))
    plan = by_strategy(plans(of, demand({A: 50.0, B: 200.0})))
    assert plan[SHARING].usd_per_hour < plan[DEDICATED].usd_per_hour
    row = fleets._saving(plan[SHARING], plan[DEDICATED])
    ends = [row["saving_if_known_low"], row["saving_if_known_high"]]
    over_demand = list(costs(of, None))
    chances = [cost.probability_of_saving for cost in over_demand if cost.option.shared]
    assert set(np.isnan([row["probability_of_saving"], *ends, *chances])) == {bool(line)}
    assert reliable == any(
        each.option.shared and each.is_reliable for each in demand_ranges(over_demand)
    )


def test_servers_share_a_model_in_proportion_to_what_they_carry():
    """A server carries 15 requests/s of a with the mix 3 : 1, and 5 requests/s with the mix 1 : 3.

    The demand for b needs one server with each mix.
    """
    truth = synthetic.Truth(EXACT.capacities, gain=2.0, between=0, within=1e-9, repeats=1)
    made = by_strategy(plans(points(truth, mixes=((3, 1), (1, 3))), demand({A: 19.9, B: 79.9})))
    loads = {
        offer.point.peak.mix: made[SHARING].load_rps(offer, A) for _, offer in made[SHARING].chosen
    }
    assert loads == pytest.approx({"a 3 : 1 b": 0.75 * 19.9, "a 1 : 3 b": 0.25 * 19.9})


def test_shared_points_are_brought_to_the_speed_of_the_dedicated_cells():
    wandering = synthetic.Truth(
        EXACT.capacities, gain=1.5, between=0, within=1e-9, repeats=1, host=0.3
    )
    alone_a, alone_b, shared = points(wandering)
    ratio = shared.rates_rps[A] / alone_a.rates_rps[A] + shared.rates_rps[B] / alone_b.rates_rps[B]
    assert ratio == pytest.approx(1.5, rel=0.01)


# --- tenants without load ---

OF_THREE = {"c": 20.0, A: 10.0, B: 40.0}


def with_idle(mixes=((0, 1, 1),), lost=""):
    """Return records in which c has no load.

    The host was faster during the mixes, which doubles their limits.
    """
    faster = 2 ** (1 / synthetic.SPARE)
    truth = synthetic.Truth(OF_THREE, gain=2.0, between=0, within=1e-9, repeats=1)
    made = synthetic.records(truth, 0, mixes=mixes, holds=())
    for record in made:
        if record["cell"]["run"]["line"] == "mix":
            at_limit = record["speeds_rps"]
            record["speeds_rps"] = {name: [faster * v for v in at_limit[name]] for name in (A, B)}
            record["speeds_rps"]["c"] = [None] * len(at_limit[A])
    return [
        synthetic.with_outcome(each, "disturbed", "other_load")
        if each["cell"]["scenario"] == f"cpu1.{lost}"
        else each
        for each in made
    ]


def points_of(made):
    found = list(group(synthetic.loaded(made), seed=0, draws=400).values())
    return operating_points(found, {"cpu1": synthetic.PRICE})


@pytest.mark.parametrize("lost", ["", "c"])
def test_a_tenant_without_load_is_not_served_and_says_nothing_of_the_speed(lost):
    (shared,) = (point for point in points_of(with_idle(lost=lost)) if point.is_shared)
    assert shared.models == (A, B)
    assert shared.rates_rps == pytest.approx({A: 5.0, B: 20.0}, rel=1e-6)


def test_servers_where_a_model_had_no_load_are_none_of_that_model_and_serve_the_others():
    found = points_of(with_idle())
    made = by_strategy(plans(found, demand({A: 5.0, B: 20.0, "c": 20.0})))[SHARING]
    assert {model: made.servers_with(model) for model in made.models} == {A: 1, B: 1, "c": 1}
    assert all(share > 0 for share in attained(made).values())
    without = by_strategy(plans(found, demand({A: 5.0, B: 20.0})))[SHARING]
    assert without.servers == 1


def test_tables_of_a_fleet_with_such_a_server_are_whole():
    asked = demand({A: 5.0, B: 20.0, "c": 20.0})
    made = synthetic_files.tables_of(
        with_idle(), synthetic.TASK.model_copy(update={"demand": asked})
    )
    tables = {name: table.to_pandas() for name, table in made.items()}
    assert tables["fleet_servers"]["load"].notna().all()
    assert tables["fleet_models"]["attained"].notna().all()
    (conclusion,) = servers_to_buy.conclusions(tables)
    assert conclusion.kind in ("yes", "perhaps")


# --- virtual time ---


def test_a_single_queue_is_late_as_the_formula_says():
    """If a request has no time to wait, it is late whenever the server is busy at its arrival.

    In M/D/1, the share of late requests is then the utilisation.
    """
    (point, *_) = points(mixes=())
    sla_ms = point.peak.task.tenants[0].sla.latency_ms
    slow = [
        record.model_copy(update={"unloaded_p50_ms": {A: sla_ms - 1e-6}})
        for record in point.peak.records
    ]
    late = replace(point, peak=replace(point.peak, records=tuple(slow)))
    plan = SimpleNamespace(
        models=(A,),
        chosen=[(3, of_plans.Offer(late, "on_demand"))],
        load_rps=lambda offer, model: 5.5,
    )
    assert point.peak.speeds_rps[A] == pytest.approx(11)
    assert attained(plan)[A] == pytest.approx(0.5, abs=0.01)


def test_the_speed_that_the_host_had_with_a_mix_does_not_matter():
    """The loads of a plan and the service times refer to the host speed during the dedicated cells.

    At this host speed, the server has just enough capacity.
    """
    shares = [attained(of_one_server(faster))[A] for faster in (0.8, 1.0, 1.25)]
    assert shares == pytest.approx([shares[1]] * 3, abs=1e-3)
    assert 0.5 < shares[1] < 1


def of_one_server(faster):
    """Return the plan for one server with a mix. The mix was measured on a faster host."""
    truth = synthetic.Truth({A: 100.0, B: 400.0}, gain=1.05, between=0, within=1e-9, repeats=1)
    made = synthetic.records(truth, mixes=((1, 1),), holds=())
    for record in made:
        if record["cell"]["run"]["line"] == "mix":
            higher = faster**synthetic.SPARE
            record["estimate_scale"] *= higher
            record["posterior_scales"] = [higher * s for s in record["posterior_scales"]]
            record["speeds_rps"] = {
                name: [faster * rps for rps in seen] for name, seen in record["speeds_rps"].items()
            }
            record["unloaded_p50_ms"] = {
                name: ms / faster for name, ms in record["unloaded_p50_ms"].items()
            }
    return by_strategy(plans(points_of(made), demand({A: 52.0, B: 208.0})))[SHARING]


def test_light_fleets_keep_their_slas_in_virtual_time():
    fast = synthetic.Truth({A: 1000.0, B: 4000.0})
    made = by_strategy(plans(points(fast), demand({A: 200.0, B: 800.0})))
    assert all(share > 0.999 for share in attained(made[DEDICATED]).values())


# --- over the demand ---


def test_a_gain_of_two_pays_at_every_demand_but_one_of_half_only_at_small_ones():
    rich = list(demand_ranges(list(costs(points(), None))))
    assert [each.option.shared for each in rich] == [True]
    assert rich[0].least_saving >= 1 / 3
    poor = synthetic.Truth(EXACT.capacities, gain=0.5, between=0, within=1e-9, repeats=1)
    found = list(demand_ranges(list(costs(points(poor), None))))
    # At higher demands, sharing saves a server only if the last dedicated server of each model has
    # hardly any load.
    assert [each.option.shared for each in found[:4]] == [True, False, True, False]
    assert found[2].most_saving == pytest.approx(1 / 4)
    # With a sharing ratio of 0.5, a shared server carries a quarter of each dedicated peak: 10 / 4
    # + 40 / 4 requests/s.
    assert found[0].last.total_rps == pytest.approx(12.5, rel=0.06)
    # The lowest demand is one hundredth of the load of one dedicated server: 25 / 100 requests/s.
    assert found[0].first.total_rps == pytest.approx(0.25, rel=1e-6)
    assert (found[0].first.servers, found[0].last.servers) == (1, 1)
    assert found[-1].last.total_rps == pytest.approx(10 * 2 / (1 / 25 + 1 / 25), rel=1e-6)
    assert found[-1].last.servers == 10


def test_the_demand_of_the_study_is_the_question_if_there_is_one():
    (asked,) = questions(points(), demand({A: 30.0, B: 10.0}))
    assert asked == Question((A, B), (0.75, 0.25))
    (default,) = questions(points(), None)
    assert default.shares == pytest.approx((0.2, 0.8))  # equally many dedicated servers per model


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ((0.755, 0.245), "a 76%, b 24%"),
        ((0.003, 0.997), "a 0.3%, b 99.7%"),
        ((0.00004, 0.99996), "a 0.004%, b 99.996%"),
    ],
)
def test_a_model_with_the_least_share_of_the_demand_has_some(shares, words):
    assert Question((A, B), shares).description == words
    assert PROPORTION.test(pd.Series([words])).all()
    assert not PROPORTION.test(pd.Series([words.replace("a 0", "a 2").replace("24", "22")])).any()


def test_a_saving_at_the_lower_limits_alone_is_that_of_the_plan_but_not_reliable():
    question = Question((A, B), (0.5, 0.5))
    alone, shared = Option("cpu1", False), Option("cpu1", True)
    unsure = [Cost(question, alone, 10.0, 3, 3.0, 2.0), Cost(question, shared, 10.0, 2, 2.0, 2.0)]
    (found,) = demand_ranges(unsure)
    assert (found.option, found.is_reliable) == (shared, False)
    assert (found.least_saving, found.most_saving) == pytest.approx((0, 1 / 3))
    as_dear = [unsure[0], Cost(question, shared, 10.0, 3, 3.0, 1.0)]
    (found,) = demand_ranges(as_dear)
    assert (found.option, found.is_reliable) == (alone, True)
    sure = [unsure[0], Cost(question, shared, 10.0, 2, 2.0, 1.0)]
    (found,) = demand_ranges(sure)
    assert (found.option, found.is_reliable) == (shared, True)
    assert (found.least_saving, found.most_saving) == pytest.approx((1 / 3, 0.5))
    # A more expensive type with a reliable saving comes before a cheaper type without one.
    other = Option("cpu2", True)
    several = [*unsure, Cost(question, other, 10.0, 1, 2.5, 1.5)]
    (found,) = demand_ranges(several)
    assert (found.option, found.is_reliable) == (other, True)


@pytest.mark.parametrize(("probability", "reliable"), [(0.89, False), (0.9, True), (np.nan, True)])
def test_a_saving_is_not_reliable_where_one_draw_in_ten_saves_nothing(probability, reliable):
    question = Question((A, B), (0.5, 0.5))
    alone = Cost(question, Option("cpu1", False), 10.0, 3, 3.0, 3.0)
    other = Cost(question, Option("cpu1", True), 10.0, 2, 2.0, 2.0, probability)
    (found,) = demand_ranges([alone, other])
    assert found.option.shared and found.is_reliable == reliable


@pytest.mark.parametrize(("gain", "within"), [(1.1, 0.05), (1.0, 0.05), (0.9, 0.05), (1.1, 1e-9)])
def test_how_sure_a_saving_of_whole_servers_is(gain, within):
    """At small demands, one shared server replaces two dedicated servers, so sharing surely saves.

    At large demands, the probability of a saving depends on the uncertainty of the sharing ratio.
    """
    truth = synthetic.Truth(EXACT.capacities, gain=gain, between=0, within=within, repeats=1)
    found = list(costs(points(truth), None))
    shared = [cost.probability_of_saving for cost in found if cost.option.shared]
    assert all(np.isnan(cost.probability_of_saving) for cost in found if not cost.option.shared)
    assert shared[0] == 1.0 and min(shared) >= 0
    unsure = np.mean([0.02 < chance < 0.98 for chance in shared])
    if within < 0.01:  # only demands that fill a server exactly are unsure
        assert unsure < 0.02 and {0.0, 1.0} < set(shared)
    else:
        assert unsure > 0.1
    for demand_range in demand_ranges(found):
        assert np.isnan(demand_range.least_probability) == (not demand_range.option.shared)


def test_how_sure_is_not_told_where_ways_to_divide_servers_are_too_many(monkeypatch):
    """The load of ten dedicated servers needs five shared servers.

    With MAX_WAYS = 15, Perseus computes the probability of a saving for at most four servers.
    """
    monkeypatch.setattr(servers_needed, "MAX_WAYS", 15)
    shared = [cost for cost in costs(points(), None) if cost.option.shared]
    assert [np.isnan(cost.probability_of_saving) for cost in shared] == [
        cost.servers > 4 for cost in shared
    ]
    assert {cost.servers for cost in shared} >= {4, 5}


def test_changes_of_the_demand_and_of_prices():
    asked = demand({A: 50.0, B: 200.0})
    made = plans(points(), asked)
    found = {(c.plan.strategy, c.factor): c for c in changes(made, asked)}
    assert found[DEDICATED, 2.0].plan.servers == 20
    assert not found[DEDICATED, 2.0].keeps_servers
    assert found[DEDICATED, 0.5].plan.servers == 6  # three servers, and half of five
    # a change of the only price changes no fleet
    assert all(change.server is None for change in found.values())


def test_scenarios_of_the_same_models_on_one_server_are_told_apart():
    """One scenario carries more requests/s of a, and the other scenario more requests/s of b."""
    alone = synthetic.records(EXACT, mixes=(), holds=())
    (shared,) = (each for each in synthetic.records(EXACT, mixes=((1, 1),), holds=())
                 if len(each["cell"]["tenants"]) == 2)  # fmt: skip
    made = [*alone, carrying(shared, "batching", [9.0, 24.0]), carrying(shared, "not", [6.0, 36.0])]
    asked = demand({A: 11.9, B: 47.9})
    found = {(c.plan.strategy, c.factor): c for c in changes(plans(points_of(made), asked), asked)}
    half, same = found[SHARING, 0.5], found[SHARING, 1.25]
    assert same.before.description == (
        "1 x (a 1 : 1 b, as in cpu1.batching) + 1 x (a 1 : 1 b, as in cpu1.not)"
    )
    assert same.keeps_servers
    assert half.plan.servers == 1 and not half.keeps_servers


def carrying(record, scenario, rates_rps):
    """Return the record of a shared load line for `scenario`, with its peak at `rates_rps`."""
    cell = record["cell"]
    names = {
        key: cell[key].replace("cpu1.shared", f"cpu1.{scenario}") for key in ("cell", "scenario")
    }
    line = {"base_rps": [0.0, 0.0], "direction_rps": rates_rps}
    at_limit = {"estimate_scale": 1.0, "posterior_scales": [1.0] * 100}
    return record | {"cell": cell | names, "line": line} | at_limit


def test_a_change_is_solved_once_and_keeps_the_fleet_where_none_is_cheaper(monkeypatch):
    """At a sharing ratio of 1, two shared servers carry as much as one dedicated server of each
    model."""
    asked = demand({A: 15.0, B: 60.0})
    of = points(synthetic.Truth(EXACT.capacities, between=0, within=1e-9, repeats=1))
    made = plans(of, asked)
    monkeypatch.setattr(of_plans, "with_most_spare_capacity", None)
    (before,) = (plan for plan in made if plan.strategy == SHARING)
    again = planned(SHARING, before.offers, before.level, asked, in_full=False)
    others = [c for c in itertools.product(range(4), repeat=len(again.counts))
              if sum(c) == before.servers]  # fmt: skip
    kept = {counts for counts in others if keeping(again, counts, asked).counts == counts}
    assert before.counts in kept and 1 < len(kept) < len(others)
    dear = tuple(2 * count for count in before.counts)
    assert keeping(again, dear, asked) == again
    of_study = SimpleNamespace(plans=made, task=SimpleNamespace(study="s", demand=asked))
    rows = list(fleet_changes.rows(of_study))
    assert len(rows) == 8
    assert all(row["status"] == OPTIMAL and row["gap"] <= GAP for row in rows)


def test_what_a_plan_says_of_its_models_looks_at_the_servers_with_them_alone():
    """A plan reads the models of each server type only once.

    If a plan examined all servers for each model, a plan of many models would be slow.
    """
    looked = []

    class Point(SimpleNamespace):
        @property
        def models(self):
            looked.append(self)
            return (self.model,)

    names = [f"m{i}" for i in range(100)]
    offers = [
        of_plans.Offer(Point(model=name, lower_rps={name: 10.0}), "on_demand") for name in names
    ]
    level = DemandLevel(name="demand", rps=dict.fromkeys(names, 5.0))
    plan = of_plans.Plan(level, DEDICATED, tuple(offers), 0.0, (2,) * 100)
    for offer, name in zip(offers, names, strict=True):
        assert plan.capacity_rps(name) == 20
        assert plan.load_rps(offer, name) == 2.5
        assert plan.servers_with(name) == 2
    assert len(looked) == 100


def test_revocations_lose_what_a_start_takes(tmp_path):
    """Half of the demand is on spot servers, which are revoked every two minutes."""
    made = synthetic.records(synthetic.Truth(synthetic.TRUTH.capacities, repeats=1), holds=())
    cells = [*synthetic_files.write(tmp_path, made), synthetic_files.write_startup(tmp_path)]
    asked = demand({"resnet18": 290.0}, spot=Spot(largest_share=0.5, revocations_per_hour=30))
    task = synthetic.TASK.model_copy(update={"demand": asked})
    (row, *_) = fleets.rows(StudyResults.read(task, cells, []))
    starts = synthetic.startup_record()["starts"]
    mean_s = sum(start["ready_s"] for start in starts) / len(starts)
    assert row["on_spot"] > 0.4
    starting = 30 * mean_s / (3600 + 30 * mean_s)
    assert row["lost_to_revocations"] == pytest.approx(row["on_spot"] * starting)
    # A server that is unavailable for a share of its time costs 1 / (1 - share) times as much.
    expected = row["usd_per_month"] * (1 + (1 / (1 - starting) - 1) * _spot_part(task, cells))
    assert row["usd_per_month_expected"] == pytest.approx(expected)
    (unknown, *_) = fleets.rows(StudyResults.read(task, cells[:-1], []))
    assert np.isnan(unknown["lost_to_revocations"]) and np.isnan(unknown["usd_per_month_expected"])
    record = json.loads((cells[-1] / "record.json").read_text())
    write_json(cells[-1] / "record.json", record | {"outcome": "failed", "starts": []})
    (failed, *_) = fleets.rows(StudyResults.read(task, cells, []))
    assert np.isnan(failed["lost_to_revocations"])
    server = record["cell"]["server"] | {"launcher": "remote", "remote": {"host": "10.0.0.7"}}
    write_json(cells[-1] / "record.json", record | {"cell": record["cell"] | {"server": server}})
    (remote, *_) = fleets.rows(StudyResults.read(task, cells, []))
    assert np.isnan(remote["lost_to_revocations"])


def test_no_more_is_lost_to_revocations_than_there_is(tmp_path):
    """With 60 revocations per hour and a start time of 1 min, a server spends half of its time on
    starts."""
    made = synthetic.records(synthetic.Truth(synthetic.TRUTH.capacities, repeats=1), holds=())
    cells = [*synthetic_files.write(tmp_path, made), synthetic_files.write_startup(tmp_path)]
    record = json.loads((cells[-1] / "record.json").read_text())
    starts = [start | {"ready_s": 60.0} for start in record["starts"]]
    write_json(cells[-1] / "record.json", record | {"starts": starts})
    asked = demand({"resnet18": 290.0}, spot=Spot(largest_share=1.0, revocations_per_hour=60))
    task = synthetic.TASK.model_copy(update={"demand": asked})
    (row, *_) = fleets.rows(StudyResults.read(task, cells, []))
    assert row["on_spot"] == pytest.approx(1.0)
    assert row["lost_to_revocations"] == pytest.approx(0.5)


def _spot_part(task, cells):
    """Return the share of the spot servers in the price of the dedicated fleet."""
    (plan, *_) = StudyResults.read(task, cells, []).plans
    spot = sum(n * each.usd_per_hour for n, each in plan.chosen if each.pricing == "spot")
    return spot / plan.usd_per_hour


def test_nothing_is_bought_for_a_level_without_demand():
    """For example, low_rps: 0 at night."""
    night = DemandLevel(name="low", rps={A: 0.0, B: 0.0})
    asked = demand({A: 1.0, B: 4.0}).model_copy(update={"levels": (night,)})
    made = plans(points(), asked)
    assert [(plan.strategy, plan.servers, plan.usd_per_hour, plan.why_not) for plan in made] == [
        (DEDICATED, 0, 0.0, ""),
        (SHARING, 0, 0.0, ""),
    ]
    assert not questions(points(), asked)
    assert not list(changes(made, asked))


@pytest.mark.parametrize("seed", range(8))
def test_all_ways_to_divide_servers_carry_what_the_integer_programme_finds(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    models, columns = rng.integers(1, 4), rng.integers(1, 6)
    rates = rng.uniform(0, 50, (models, columns)) * (rng.random((models, columns)) < 0.7)
    rates[:, 0] += 1  # every model has a server
    shares = rng.dirichlet(np.ones(models))
    tried = {n: float(servers_needed._of_all_ways(rates[None], shares, n, 1)[0]) for n in (1, 2, 7)}
    monkeypatch.setattr(servers_needed, "MAX_WAYS", 0)
    for servers, carried in tried.items():
        if carried:
            solved = servers_needed.needed(rates, shares, [carried, 1.001 * carried])
            assert solved[0] <= servers < solved[1]


def test_a_demand_for_more_models_than_are_counted_one_by_one():
    """Sixty models in pairs need at least thirty servers, one for each pair.

    A pair carries ten requests/s of each model.
    """
    rates = np.kron(np.eye(30), np.full((2, 1), 10.0))
    shares = np.full(60, 1 / 60)
    demands = [1.0, 600.0, 600.1, 1200.0, 60000.0]
    assert servers_needed.needed(rates, shares, demands).tolist() == [30, 30, 60, 60, 3000]


@pytest.mark.parametrize("mixes", [2, 20])
@pytest.mark.parametrize("seed", range(5))
def test_the_map_of_two_demands_is_what_the_integer_programme_buys(seed, mixes):
    rng = np.random.default_rng(seed)
    of_mixes = rng.uniform([[2], [8]], [[9], [36]], (2, mixes))
    rates = np.column_stack([np.diag([10.0, 40.0]), of_mixes])
    first, second = rng.uniform(0, 45, 4), rng.uniform(0, 180, 3)
    first.sort()
    found = demand_map.needed_together(rates, first, second, most=10)
    offers = Offers(rates, np.ones(2 + mixes), np.zeros(2 + mixes, bool))
    for (row, column), count in np.ndenumerate(found):
        wanted = Wanted(np.array([first[column], second[row]]))
        assert cheapest(offers, wanted).counts.sum() == count
    apart = demand_map.needed_apart((10.0, 40.0), first, second)
    assert (found <= apart).all()
    assert apart[0, 0] == np.ceil(first[0] / 10) + np.ceil(second[0] / 40)


def test_a_map_says_nothing_of_more_servers_than_were_tried():
    found = demand_map.needed_together(np.full((2, 1), 10.0), np.array([5, 35]), np.array([20]), 3)
    assert found[0, 0] == 2 and np.isnan(found[0, 1])


@pytest.mark.parametrize("spread", [0.02, 0.2, 1], ids=["alike", "near", "anything"])
@pytest.mark.parametrize("seed", range(5))
def test_draws_need_the_servers_that_each_of_them_needs_alone(seed, spread):
    rng = np.random.default_rng(seed)
    models, columns = rng.integers(1, 4), rng.integers(2, 5)
    rates = rng.uniform(0, 50, (models, columns)) * (rng.random((models, columns)) < 0.7)
    rates = rates * rng.uniform(1 - spread, 1, (6, models, columns))
    rates[:, :, 0] += 5
    shares, demands = rng.dirichlet(np.ones(models)), np.geomspace(1, 60, 9).tolist()
    together = servers_needed.needed_at_each(rates, shares, demands, certain=0)
    apart = servers_needed.needed_apart(rates, shares, demands)
    for i, of_draw in enumerate(rates):
        assert apart[i].tolist() == servers_needed.needed_apart(of_draw, shares, demands).tolist()
        assert together[i].tolist() == servers_needed.needed(of_draw, shares, demands).tolist()


@pytest.mark.parametrize("none_in_one", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_draws_carry_what_each_of_them_carries_alone(seed, none_in_one):
    rng = np.random.default_rng(seed)
    models, columns = rng.integers(1, 4), rng.integers(2, 5)
    rates = rng.uniform(5, 50, (models, columns)) * rng.uniform(0.95, 1, (6, models, columns))
    rates[3] *= not none_in_one
    shares = rng.dirichlet(np.ones(models))
    for servers in (1, 3, 6):
        together = servers_needed._of_all_ways(rates, shares, servers, 1)
        alone = [servers_needed._of_all_ways(each[None], shares, servers, 1)[0] for each in rates]
        assert together == pytest.approx(alone)
        assert (together[3] == 0) == none_in_one


def test_draws_that_need_more_servers_than_are_tried_are_not_known(monkeypatch):
    monkeypatch.setattr(servers_needed, "MAX_WAYS", 4)  # two columns: up to three servers
    rates, demands = np.full((1, 1, 2), 10.0), [5, 30, 31]
    found = servers_needed.needed_at_each(rates, np.ones(1), demands, certain=0)
    assert found[0, :2].tolist() == [1, 3] and np.isnan(found[0, 2])


def test_the_ways_to_divide_servers_are_all_of_them():
    ways = [tuple(way) for way in servers_needed.ways(3, 2).tolist()]
    assert sorted(ways) == sorted(
        way for way in itertools.product(range(3), repeat=3) if sum(way) == 2
    )
    assert servers_needed.ways(1, 5).tolist() == [[5]]


@pytest.mark.parametrize("chances", [(0.97, np.nan), (np.nan, 0.97)])
def test_a_demand_range_ends_where_it_is_no_longer_known_how_sure_a_saving_is(chances):
    question = Question((A, B), (0.5, 0.5))
    both = [
        cost
        for rps, chance in zip((10.0, 20.0), chances, strict=True)
        for cost in (
            Cost(question, Option("cpu1", False), rps, 3, 3.0, 3.0),
            Cost(question, Option("cpu1", True), rps, 2, 2.0, 2.0, chance),
        )
    ]
    found = list(demand_ranges(both))
    assert [(each.first.total_rps, each.last.total_rps) for each in found] == [(10, 10), (20, 20)]
    assert [each.least_probability for each in found] == pytest.approx(chances, nan_ok=True)


def test_the_ends_of_an_interval_of_costs_are_costs_of_whole_servers():
    """Of 100 draws, an interpolated 2.5 % quantile would lie between one and two servers."""
    assert fleets._ends(np.array([1.0] * 3 + [2.0] * 97)) == (1.0, 2.0)
