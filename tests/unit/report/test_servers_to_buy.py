"""Tests that a sentence on the servers to buy appears if, and only if, the tables imply it."""

import pytest
import synthetic
import synthetic_files

from perseus.measurement.server_under_test import NO_SERVER
from perseus.report.conclusions import over_demand, server_of_model, servers_to_buy
from perseus.report.headline import headline
from perseus.study.demand import Spot
from perseus.study.tasks.tables import DemandLevel

CAPACITIES = {"a": 100.0, "b": 400.0}


def conclusions(tables):
    """Return the conclusions for a demand, and over a range of demands."""
    return [
        each
        for of in (servers_to_buy, over_demand, server_of_model)
        for each in of.conclusions(tables)
    ]


def concluded(gain=2.0, rps=None, records=None, **settings):
    """Return the conclusions of a study with known capacities, with or without a demand."""
    truth = synthetic.Truth(CAPACITIES, gain, between=0, within=1e-6, repeats=1)
    made = records or synthetic.records(truth, mixes=((1, 1),), holds=())
    task = synthetic.TASK.model_copy(
        update={"demand": synthetic.demand(rps, **settings) if rps else None}
    )
    tables = synthetic_files.tables_of(made, task=task)
    return conclusions({name: table.to_pandas() for name, table in tables.items()})


def test_the_fleet_its_price_and_what_it_saves():
    (conclusion,) = concluded(gain=2.0, rps={"a": 390.0, "b": 1560.0})
    assert conclusion.headline == "Buy 4 servers for 139 USD per month: 4 x (a 1 : 1 b)"
    text = " ".join(conclusion.sentences)
    assert "a 390, b 1560 requests/s" in text
    assert "8 servers for 277 USD per month. Sharing saves 50 %" in text
    assert "For 25 % more demand, you need 5 servers for 173 USD per month." in text
    assert "spot" not in text


def test_no_gain_is_no_saving():
    (conclusion,) = concluded(gain=1.0, rps={"a": 390.0, "b": 1560.0})
    text = " ".join(conclusion.sentences)
    assert "Sharing saves nothing at this demand" in text
    assert "cost more" not in text


def test_a_fleet_that_the_simulation_doubts_is_not_called_sure():
    """With a sharing ratio of 2, the peaks are far above the limits that the service times
    allow."""
    (doubted,) = concluded(gain=2.0, rps={"a": 390.0, "b": 1560.0})
    assert doubted.kind == "perhaps"
    assert "measure a server of this fleet at its planned load" in " ".join(doubted.sentences)
    (sure,) = concluded(gain=2.0, rps={"a": 5.0, "b": 20.0})
    assert sure.kind == "yes"
    assert "the fleet also keeps every SLA" in " ".join(sure.sentences)


def test_a_fleet_that_is_less_sure_than_each_of_its_limits_is_not_called_sure():
    """The probability that twelve lower limits of 95 % all hold is below 95 %.

    With one model, only one lower limit must hold.
    """
    for count, kind in ((1, "yes"), (12, "perhaps")):
        truth = synthetic.Truth({f"m{i}": 100.0 for i in range(count)}, repeats=1)
        made = synthetic.records(truth, mixes=(), holds=())
        for record in made:  # fast servers, so that the simulation confirms the fleet
            record["speeds_rps"] = {name: [1000.0] * 4 for name in record["speeds_rps"]}
        points = synthetic_files.tables_of(made)["operating_points"].to_pandas()
        lower = dict(zip(points["model"], points["lower_rps"], strict=True))
        (conclusion,) = concluded(rps=lower, records=made)
        assert conclusion.headline.startswith(f"Buy {count} server")
        assert conclusion.kind == kind
        at_once = "probability that all capacities exceed their lower limits at once is lower"
        assert (at_once in " ".join(conclusion.sentences)) == (kind == "perhaps")


def test_a_fleet_of_many_models_is_named_in_part():
    many = {f"model_{i:02}": 100.0 for i in range(20)}
    truth = synthetic.Truth(many, between=0, within=1e-6, repeats=1)
    records = synthetic.records(truth, mixes=(), holds=())
    (conclusion,) = concluded(rps=dict.fromkeys(many, 99.0), records=records)
    assert conclusion.headline.startswith(
        "Buy 20 servers for 694 USD per month: 1 x (model_00) + 1 x"
    )
    assert conclusion.headline.endswith("(model_11) and 8 more load lines (see fleet_servers.csv)")
    text = " ".join(conclusion.sentences)
    assert "model_11 99 and 8 more models requests/s within every SLA" in text
    assert text.count("measure a server of this fleet at its planned load") == 3
    assert "In the simulated queue, 17 more models miss their SLA: see fleet_models.csv." in text


def ended(*outcomes):
    """Return the records of dedicated searches for a and b. The first searches for b end with
    `outcomes`. The outcome "not exported" is `infeasible` without a server."""
    truth = synthetic.Truth(CAPACITIES, between=0, within=1e-6, repeats=2)
    of_a_and_b = synthetic.records(truth, mixes=(), holds=())
    of_b = [each for each in of_a_and_b if each["cell"]["scenario"] == "cpu1.b"]
    lost = [
        synthetic.with_outcome(record, "infeasible", "it was not exported") | NO_SERVER
        if outcome == "not exported"
        else synthetic.with_outcome(record, outcome, "so it ended")
        for record, outcome in zip(of_b, outcomes, strict=False)
    ]
    return [each for each in of_a_and_b if each not in of_b] + lost + of_b[len(lost) :]


NO_PRICE = {"cpu1": synthetic.PRICE.model_copy(update={"on_demand_usd_per_hour": None})}


@pytest.mark.parametrize(
    ("outcomes", "prices", "kind"),
    [
        (["infeasible"] * 2, {}, "no"),
        (["client_limited"] * 2, {}, "unknown"),
        (["client_limited", "infeasible"], {}, "unknown"),
        (["failed"], {}, "unknown"),
        (["infeasible"], {}, "unknown"),
        (["not exported"] * 2, {}, "unknown"),
        ([], NO_PRICE, "unknown"),
    ],
)
def test_no_fleet_carries_a_demand_only_if_no_rate_keeps_an_sla(outcomes, prices, kind):
    asked = synthetic.demand({"a": 5.0, "b": 20.0})
    more = {"demand": asked, **({"prices": prices} if prices else {})}
    made = synthetic_files.tables_of(ended(*outcomes), task=synthetic.TASK.model_copy(update=more))
    tables = {name: table.to_pandas() for name, table in made.items()}
    (conclusion,) = servers_to_buy.conclusions(tables)
    first = headline(tables)
    assert conclusion.kind == first.kind == kind
    if kind == "no":
        why = "no measured server keeps the SLA of b"
        assert conclusion.headline == f"No fleet carries the demand: {why}"
        assert first.text == "No combination of the measured servers carries the demand."
    else:
        assert conclusion.headline == (
            "The servers that the demand needs are not known: none of the permitted servers has"
            f" both a price and a known lower limit of its capacity for {'a, b' if prices else 'b'}"
        )
        assert first.text == "The servers that the demand needs are not known."


def test_a_demand_for_a_model_that_was_not_measured():
    (conclusion,) = concluded(rps={"a": 5.0, "c": 1.0})
    assert conclusion.kind == "unknown" and conclusion.headline.endswith("its capacity for c")


def test_a_night_without_demand_is_no_trouble():
    night = DemandLevel(name="low", rps={"a": 0.0, "b": 0.0})
    asked = synthetic.demand({"a": 390.0, "b": 1560.0})
    task = synthetic.TASK.model_copy(
        update={"demand": asked.model_copy(update={"levels": (night, *asked.levels)})}
    )
    truth = synthetic.Truth(CAPACITIES, repeats=1)
    made = synthetic.records(truth, mixes=((1, 1),), holds=())
    tables = synthetic_files.tables_of(made, task=task)
    fleets = tables["fleets"].to_pandas().set_index(["level", "strategy"])
    assert fleets.loc[("low", "dedicated"), ["servers", "usd_per_month"]].tolist() == [0, 0]
    (conclusion,) = conclusions({name: table.to_pandas() for name, table in tables.items()})
    assert conclusion.headline.startswith("Buy ")
    assert "low" not in " ".join(conclusion.sentences).split()


def test_spot_servers_and_what_is_not_known_of_them():
    spot = Spot(largest_share=0.5, revocations_per_hour=0.1)
    (conclusion,) = concluded(gain=1.0, rps={"a": 390.0, "b": 1560.0}, spot=spot)
    assert "is on servers at the spot price; the loss through revocations is not known" in " ".join(
        conclusion.sentences
    )


def test_a_fleet_says_what_revocations_leave_of_it():
    """One of the two servers has the spot price. Perseus counts both servers for `min_servers`."""
    spot = Spot(largest_share=0.5, revocations_per_hour=0.1)
    asked = {"rps": {"a": 50.0, "b": 200.0}, "min_servers": 2}
    (conclusion,) = concluded(gain=2.0, spot=spot, **asked)
    assert conclusion.headline.startswith("Buy 2 servers")
    text = " ".join(conclusion.sentences)
    assert "the model with the fewest remaining servers would have 1 server." in text
    (steady,) = concluded(gain=2.0, **asked)
    assert "revoked at once" not in " ".join(steady.sentences)


def test_one_run_of_each_is_said():
    for repeats in (1, 2):
        truth = synthetic.Truth(CAPACITIES, repeats=repeats)
        made = synthetic.records(truth, mixes=((1, 1),), holds=())
        (conclusion,) = concluded(records=made, rps={"a": 5.0})
        assert ("from a single run" in " ".join(conclusion.sentences)) == (repeats == 1)
        assert conclusion.sentences[-1].startswith("The preset quick gives a first answer")


@pytest.mark.parametrize("rps", [{"a": 5.0, "b": 5.0}, None])
def test_capacities_of_requests_of_several_images_are_said_to_be_such(rps):
    truth = synthetic.Truth(CAPACITIES, repeats=2)
    singles, batches = (synthetic.records(truth, mixes=((1, 1),), holds=()) for _ in range(2))
    for record in batches:
        for tenant in record["cell"]["tenants"]:
            tenant["request_batch_size"] = 8 if tenant["name"] == "a" else 1
    (of_one,), (of_eight,) = (
        concluded(records=singles, rps=rps),
        concluded(records=batches, rps=rps),
    )
    assert "several images" not in " ".join(of_one.sentences)
    assert (
        "The capacities of a and a 1 : 1 b were measured with requests of several images"
        in " ".join(of_eight.sentences)
    )


@pytest.mark.parametrize(
    ("gain", "kind", "headline"),
    [
        (2.0, "yes", "a and b should share at every demand: sharing saves 50 %"),
        (0.5, "yes", "Up to 12"),
        (
            0.001,
            "no",
            "a and b should use dedicated servers: sharing is not reliably cheaper at any",
        ),
    ],
)
def test_without_a_demand_it_is_told_over_the_demand(gain, kind, headline):
    (conclusion,) = concluded(gain=gain)
    assert conclusion.kind == kind
    assert conclusion.headline.startswith(headline)
    assert conclusion.sentences


@pytest.mark.parametrize(("line", "kind"), [("mix-1-1", "yes"), ("peak", "unknown")])
def test_a_saving_without_a_demand_where_a_capacity_has_no_upper_limit(line, kind):
    """The client was too slow for one repeat, so the capacity may be higher in this repeat."""
    truth = synthetic.Truth(CAPACITIES, gain=2.0, between=0, within=0.01, repeats=2)
    made = synthetic.records(truth, mixes=((1, 1),), holds=())
    (conclusion,) = concluded(records=synthetic.with_lost(made, line, "client_limited"))
    assert conclusion.kind == kind


def test_nothing_is_said_of_what_smoke_measured():
    truth = synthetic.Truth(CAPACITIES, preset="smoke")
    assert not concluded(records=synthetic.records(truth, mixes=((1, 1),), holds=()))
