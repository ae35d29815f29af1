"""Tests that a mistake in a configuration causes one message, and none about parts that use it."""

from __future__ import annotations

import copy

import pytest
from unit.study.test_read import BASE, PAIR, problems, scenario

INF = float("inf")
OWN = {"instance": "x", "region": "y", "custom": {"vcpus": 0}}
OWN["custom"]["on_demand"] = {"usd_per_vcpu_hour": 0.03}
REPLAY = {"kind": "replay", "process": "zzz", "traces": ["none.csv"], "time_scale": 2}
LATENCY = "models[1].sla.latency_ms: must be > 0, not 0"


def tenants(wrong, **more):
    return {"scenarios": [scenario(*PAIR, **more) | {"tenants": wrong}]}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (tenants([]), "scenarios[0].tenants: must have at least 1 item"),
        (tenants(["a"]), "scenarios[0].tenants[0]: must be a mapping (key: value), not 'a'"),
        (tenants([{}, {"model": PAIR[1]}]), "scenarios[0].tenants[0].model: is missing"),
        ({"scenarios": []}, "scenarios: must have at least 1 item"),
        ({"models": []}, "models: must have at least 1 item"),
        ({"servers": "cpu1"}, "servers: must be a list, not 'cpu1'"),
        (
            {"scenarios": [scenario(*PAIR, experiments=[{"kind": "peak", "mixes": [[1, -1]]}])]},
            "scenarios[0].experiments[0].mixes[0][1]: must be >= 0, not -1",
        ),
        (
            {"scenarios": [scenario(*PAIR, experiments=[{"kind": "soak", "rates_rps": [5, 0]}])]},
            "scenarios[0].experiments[0].rates_rps[1]: must be > 0, not 0",
        ),
        (
            {"scenarios": [scenario(*PAIR, experiments=[{"starts": 3, "page_cache": ["cold"]}])]},
            "scenarios[0].experiments[0].kind: is missing",
        ),
        (
            {"scenarios": [scenario(*PAIR, experiments=[{"kind": "latency", "rates_rps": [5]}])]},
            "scenarios[0].experiments[0].kind: 'latency' is not known",
        ),
        (
            {"models": [BASE["models"][0] | {"precision": "fp64"}, BASE["models"][1]]},
            "models[0].precision: 'fp64' is not known",
        ),
        (
            {"servers": [BASE["servers"][0] | {"price": OWN}]},
            "servers[0].price.custom.vcpus: must be >= 1, not 0",
        ),
        (
            {"scenarios": [scenario(*PAIR, grid={"vary": {"runtime": ["onnx"]}})]},
            "scenarios[0].grid.vary.runtime[0]: 'onnx' is not known",
        ),
        (
            {"measurement": {"arrivals": {"process": 5, "cv": 2}}},
            "measurement.arrivals.process: 5 is not known",
        ),
        (
            {"scenarios": [scenario(*PAIR, experiments=[REPLAY])]},
            "scenarios[0].experiments[0].process: 'zzz' is not known",
        ),
        (
            tenants(
                [
                    {"model": PAIR[0], "max_batch_size": "16x", "request_batch_size": 16},
                    {"model": PAIR[1]},
                ]
            ),
            "scenarios[0].tenants[0].max_batch_size: must be a whole number",
        ),
        (
            {
                "scenarios": [],
                "servers": [BASE["servers"][0] | {"name": "own"}],
                "demand": {"models": [{"name": PAIR[0], "rps": 5}], "servers": ["own"]},
            },
            "scenarios: must have at least 1 item",
        ),
        (
            {"models": [BASE["models"][0] | {"sla": {"latency_ms": -INF}}, BASE["models"][1]]},
            "models[0].sla.latency_ms: must be > 0, not -inf",
        ),
    ],
)
def test_what_follows_from_a_stand_in_is_not_told(change, told):
    (problem,) = problems(change)
    assert problem.startswith(told)


def test_the_name_of_a_model_that_is_none_is_the_one_problem_of_those_who_refer_to_it():
    models = copy.deepcopy(BASE["models"])
    models[0]["name"] = "a/b"
    (problem,) = problems({"models": models})
    assert problem.startswith("models[0].name: 'a/b' is not a name")


def test_what_is_wrong_besides_is_told_at_once():
    """Two scenarios and a model each have a mistake."""
    models = copy.deepcopy(BASE["models"])
    models[1]["sla"] = {"latency_ms": 0}
    alone = scenario(PAIR[0], name="alone", servers=["none"])
    found = problems({"models": models, "scenarios": [*tenants([])["scenarios"], alone]})
    expected = ("scenarios[0].tenants: must have", LATENCY, "scenarios[1].servers[0]: 'none' is")
    assert len(found) == len(expected)
    assert all(any(each.startswith(text) for each in found) for text in expected)


@pytest.mark.parametrize(
    ("servers", "told"),
    [
        (["cpu2", False], ["demand.servers[0]: 'cpu2' is not", "demand.servers[1]: must be a"]),
        (["cpu1", "nope", False], ["demand.servers[1]: 'nope'", "demand.servers[2]: must be a"]),
        (["nope", "cpu1", "cpu1"], ["demand.servers: has 'cpu1' twice", "demand.servers[0]: 'no"]),
    ],
)
def test_what_else_is_listed_beside_a_wrong_server_is_looked_at(servers, told):
    found = problems({"demand": {"models": [{"name": PAIR[0], "rps": 5}], "servers": servers}})
    assert len(found) == len(told)
    assert all(any(each.startswith(text) for each in found) for text in told)


def test_a_key_may_be_called_like_the_kind_of_its_experiment():
    wrong = {"kind": "soak", "soak": 5, "rates_rps": [5, 5]}
    (problem,) = problems({"scenarios": [scenario(*PAIR, experiments=[wrong])]})
    assert problem.startswith("scenarios[0].experiments[0].soak: unknown key (known: kind,")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({False: 4}, "the configuration, key False: must be a string (YAML reads no, off and"),
        ({"costs": {2026: 4}}, "costs, key 2026: must be a string (write '2026' in quotes)"),
        ({"costs": {None: 4}}, "costs, key ~: must be a string (write '~' in quotes)"),
    ],
)
def test_a_key_that_yaml_does_not_take_for_text_is_told_with_what_it_stands_in(change, told):
    (problem,) = problems(change)
    assert problem.startswith(told)
