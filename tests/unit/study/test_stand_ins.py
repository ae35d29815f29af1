"""What is wrong in a configuration is told, and not what others say for want of it."""

from __future__ import annotations

import copy

import pytest
from unit.study.test_read import BASE, PAIR, problems, scenario

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
    """Also in a scenario beside that whose tenants are wrong."""
    models = copy.deepcopy(BASE["models"])
    models[1]["sla"] = {"latency_ms": 0}
    alone = scenario(PAIR[0], name="alone")
    found = problems({"models": models, "scenarios": [*tenants([])["scenarios"], alone]})
    expected = ("scenarios[0].tenants: must have", LATENCY, "scenarios[1].name: 'alone' has one")
    assert len(found) == len(expected)
    assert all(any(each.startswith(text) for each in found) for text in expected)
