"""Tests of what a study logs to MLflow, without MLflow."""

import sys
from unittest.mock import Mock

import pandas as pd
import pytest

from perseus.report.tracking import (
    LOGGED,
    TrackingError,
    metrics,
    parameters,
    require_store,
    track,
)
from perseus.study.tasks.track import TrackTask

EMPTY = {name: pd.DataFrame(columns=["mix"]) for name in LOGGED}


def test_metrics_are_the_finite_numbers_of_each_row():
    peaks = pd.DataFrame(
        {
            "server": ["cpu1", "cpu1~int8"],
            "mix": ["a 1 : 1 b", "a beside b held at 50 %"],
            "estimate_rps": [120.5, 80.0],
            "ci_low_rps": [110.0, 0.0],
            "ci_high_rps": [float("inf"), 90.0],
            "certified_rps": [float("nan"), None],
        }
    )
    assert dict(metrics({**EMPTY, "peaks": peaks})) == {
        "peaks/cpu1/a 1 : 1 b/estimate_rps": 120.5,
        "peaks/cpu1/a 1 : 1 b/ci_low_rps": 110.0,
        "peaks/cpu1_int8/a beside b held at 50 _/estimate_rps": 80.0,
        "peaks/cpu1_int8/a beside b held at 50 _/ci_low_rps": 0.0,
        "peaks/cpu1_int8/a beside b held at 50 _/ci_high_rps": 90.0,
    }


def test_the_metrics_of_very_long_mixes_have_different_names():
    models = [f"model_with_a_long_name_{i}" for i in range(12)]
    mixes = [f"{' + '.join(models)} {weights}" for weights in ("1 : 1", "2 : 1")]
    rates = {"estimate_rps": [2.0, 6.0], "ci_low_rps": [1.0, 5.0], "ci_high_rps": [3.0, 7.0]}
    peaks = pd.DataFrame({"server": "cpu1", "mix": mixes, **rates, "certified_rps": None})
    found = dict(metrics({**EMPTY, "peaks": peaks}))
    assert sorted(found.values()) == [1.0, 2.0, 3.0, 5.0, 6.0, 7.0]
    assert max(map(len, found)) <= 250
    assert {name.rpartition("/")[2] for name in found} == {*rates}


def test_load_lines_with_the_same_description_have_different_names():
    """A frontier and the key `mixes` may both have the mix 1 : 1."""
    lines = {"server": "cpu1", "mix": "a 1 : 1 b", "load_line": ["mix-1-1", "frontier-50"]}
    values = {"sharing_ratio": [1.1, 1.2], "saving": None, "ci_low": None, "ci_high": None}
    savings = pd.DataFrame({**lines, **values, "probability_of_saving": None})
    other = savings[:1].assign(server="cpu2")
    assert dict(metrics({**EMPTY, "savings": pd.concat([savings, other])})) == {
        "savings/cpu1/a 1 : 1 b/mix-1-1/sharing_ratio": 1.1,
        "savings/cpu1/a 1 : 1 b/frontier-50/sharing_ratio": 1.2,
        "savings/cpu2/a 1 : 1 b/sharing_ratio": 1.1,
    }


def test_costs_are_of_a_pricing_and_fleets_of_no_server():
    costs = {"server": "cpu1", "mix": "a", "pricing": "spot", "usd_per_hour": 0.02}
    fleets = {"level": "typical", "strategy": "shared", "servers": 3, "usd_per_month": 99.0}
    found = dict(
        metrics(
            EMPTY
            | {
                "costs": pd.DataFrame([costs | {"usd_per_million_inferences": 0.3}]),
                "fleets": pd.DataFrame([fleets | {"saving": None}]),
            }
        )
    )
    assert found == {
        "costs/cpu1/a/spot/usd_per_hour": 0.02,
        "costs/cpu1/a/spot/usd_per_million_inferences": 0.3,
        "fleets/typical/shared/servers": 3.0,
        "fleets/typical/shared/usd_per_month": 99.0,
    }


def test_parameters_are_the_keys_of_the_configuration():
    configuration = {
        "study": "pair",
        "models": [{"name": "a", "sla": {"latency_ms": 50.0}}, {"name": "b"}],
        "scenarios": [{"name": "shared", "servers": ["cpu1"]}],
    }
    assert dict(parameters(configuration)) == {
        "study": "pair",
        "models/a/name": "a",
        "models/a/sla/latency_ms": "50.0",
        "models/b/name": "b",
        "scenarios/shared/name": "shared",
        "scenarios/shared/servers": "['cpu1']",
    }


@pytest.mark.parametrize(
    ("tensor", "part"),
    [("/image", "_image"), ("a//b/", "a__b_"), ("..", "_"), (".", "_"), ("", "_"), (".a", ".a")],
)
def test_a_name_of_the_configuration_is_one_part_that_mlflow_accepts(tensor, part):
    """MLflow rejects empty parts of names, and the parts . and .. of a path."""
    models = [{"name": "a", "shape": {tensor: [3, 224, 224]}}]
    assert list(parameters({"models": models})) == [
        ("models/a/name", "a"),
        (f"models/a/shape/{part}", "[3, 224, 224]"),
    ]


@pytest.mark.parametrize(
    ("error", "raised", "message"),
    [
        (OSError("the disk is full"), TrackingError, "does not accept the results: the disk is f"),
        (KeyboardInterrupt("Ctrl-C"), KeyboardInterrupt, "Ctrl-C"),
    ],
)
@pytest.mark.parametrize("store_answers", [True, False])
def test_a_run_that_the_store_does_not_accept_has_failed(
    tmp_path, monkeypatch, store_answers, error, raised, message
):
    store = Mock()
    store.create_run.return_value.info.run_id = "run 1"
    store.log_batch.side_effect = error
    store.set_terminated.side_effect = None if store_answers else OSError("no answer")
    monkeypatch.setitem(sys.modules, "mlflow", Mock(MlflowClient=lambda tracking_uri: store))
    monkeypatch.setitem(sys.modules, "mlflow.entities", Mock())
    tables = {name: tmp_path / f"{name}.parquet" for name in LOGGED}
    for path in tables.values():
        pd.DataFrame(columns=["server", "scenario", "mix"]).to_parquet(path)
    task = TrackTask(study="pair", uri="http://store", configuration={"study": "pair"})
    with pytest.raises(raised, match=message):
        track(task, tables, [])
    store.set_terminated.assert_called_once_with("run 1", "FAILED")


def test_without_mlflow_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(TrackingError, match=r"pip install -r envs/mlflow\.txt"):
        require_store("http://127.0.0.1:5000", "pair")
