"""Tests of the table `catalogue`: costs and accuracies of networks."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import synthetic
import synthetic_files
from scipy.stats import binomtest

from perseus.host import parquet
from perseus.results.study_results import StudyResults
from perseus.results.tables import catalogue, catalogue_predictions
from perseus.results.tables.catalogue_predictions import family, within
from perseus.study.architectures import default_weights

NAMES = ["resnet18", "resnet34", "mobilenet_v2", "vgg11", "densenet121", "regnet_y_400mf"]
NAMES += ["squeezenet1_1", "shufflenet_v2_x1_0", "efficientnet_b0", "googlenet"]


def export_of(name):
    """Return the export record of a network. The bytes are computed from the operations."""
    of = default_weights()[name]
    cost = {"flops": 2e9 * of.gflops, "traffic_bytes": 4e7 * of.gflops**0.5, "operators": 100}
    cost["weight_bytes"] = 4.0 * of.parameters
    inputs = [{"dims": [3, of.input_px, of.input_px]}]
    return {"architecture": name, "inputs": inputs, "cost": cost}


def time_ms(export):
    cost = export["cost"]
    return cost["flops"] / 5e7 + cost["traffic_bytes"] / 2e7 + cost["operators"] / 50


def results_of(folder, records, exports):
    cells = [synthetic_files._write_cell(folder, record, []) for record in records]
    read = StudyResults.read(synthetic.TASK, cells, [])
    return StudyResults(read.task, read.records, (), exports)


@pytest.fixture
def study(tmp_path):
    """Return a study of ten networks whose times are weighted sums of the numbers of operations,
    bytes and operators."""
    exports = {name: export_of(name) for name in NAMES}
    return results_of(tmp_path, _records_of(NAMES), exports)


def table(module, results):
    return parquet.table(list(module.rows(results)), module.SCHEMA.arrow).to_pandas()


def test_a_row_has_accuracy_rates_limits_and_their_cost(study):
    rows = table(catalogue, study).set_index(["model", "sla"])
    row = rows.loc[("resnet18", "latency")]
    assert (row["weights"], row["top1"], row["input_px"]) == ("IMAGENET1K_V1", 69.758, 224)
    assert row["limit_rps"] == pytest.approx(0.9 * row["full_ips"])
    usd = synthetic.PRICE.on_demand_usd_per_hour / 3600 / row["limit_rps"] * 1e6
    assert row["usd_per_million_inferences"] == pytest.approx(usd)
    assert row["server_share"] == pytest.approx(1 - row["full_ips"] * 27.0 / 1000)


def test_a_network_is_on_the_front_unless_another_is_cheaper_and_more_accurate(study):
    rows = table(catalogue, study)
    mine = rows[rows["sla"] == "latency"].sort_values("usd_per_million_inferences")
    best = np.maximum.accumulate(mine["top1"].to_numpy())
    assert list(mine["on_front"]) == list(mine["top1"].to_numpy() == best)


def test_measured_accuracies_of_all_precisions_share_a_front(tmp_path):
    """By published accuracy, resnet34 is better than resnet18. By measured accuracy, resnet34 in
    int8 is worse than resnet18 in fp32."""
    records = [
        synthetic.catalogue_record(name, precision=precision)
        | {"accuracy": {"images": 200, "correct": correct}}
        for name, precision, correct in (("resnet18", "fp32", 140), ("resnet34", "int8", 120))
    ]
    exports = {name: export_of(name) for name in ("resnet18", "resnet34")}
    rows = table(catalogue, results_of(tmp_path, records, exports)).set_index(["model", "sla"])
    row = rows.loc[("resnet18", "latency")]
    assert (row["measured_top1"], row["accuracy"], row["labelled_images"]) == (70.0, 70.0, 200)
    interval = binomtest(140, 200).proportion_ci()
    assert row["measured_top1_low"] == pytest.approx(100 * interval.low)
    assert row["measured_top1_high"] == pytest.approx(100 * interval.high)
    assert row["top1"] == 69.758  # as torchvision publishes it
    assert set(rows["front"]) == {"measured"}
    on_front = rows["on_front"].xs("latency", level="sla").to_dict()
    assert on_front == {"resnet18": True, "resnet34": False}


def test_without_labels_each_precision_has_its_own_front(tmp_path):
    names = {"resnet18": "fp32", "resnet34": "int8"}
    records = [synthetic.catalogue_record(name, precision=of) for name, of in names.items()]
    exports = {name: export_of(name) for name in names}
    rows = table(catalogue, results_of(tmp_path, records, exports))
    assert list(rows["front"]) == ["fp32", "fp32", "int8", "int8"] and rows["on_front"].all()
    assert set(rows["accuracy"]) == {69.758, 73.314} and rows["measured_top1"].isna().all()


def test_requests_of_eight_images_cost_an_eighth_for_each(tmp_path):
    one, eight = (
        synthetic.catalogue_record(name, request_batch_size=images)
        for name, images in (("resnet18", 1), ("resnet34", 8))
    )
    found = results_of(tmp_path, [one, eight], {name: export_of(name) for name in NAMES})
    usd = table(catalogue, found).groupby("model")["usd_per_million_inferences"].first()
    assert usd["resnet18"] == pytest.approx(8 * usd["resnet34"])


def test_what_could_not_be_served_is_a_row_with_its_reason(tmp_path):
    lost = synthetic.catalogue_record() | {"outcome": "failed", "reason": "no kernel", "limits": []}
    (row,) = table(catalogue, results_of(tmp_path, [lost], {})).to_dict("records")
    assert (row["verdict"], row["reason"], row["sla"]) == ("failed", "no kernel", "")
    assert pd.isna(row["top1"]) and pd.isna(row["on_front"])


def test_an_sla_that_single_requests_miss_is_infeasible(tmp_path):
    record = synthetic.catalogue_record()
    missed = dict.fromkeys(("limit_rps", "low_rps", "high_rps", "certified_rps"))
    record["limits"][1] |= missed | {"reason": "single requests take 300 ms"}
    rows = table(catalogue, results_of(tmp_path, [record], {})).set_index("sla")
    assert rows["verdict"].to_dict() == {"times_unloaded": "ok", "latency": "infeasible"}
    assert rows.loc["latency", "reason"] == "single requests take 300 ms"


def test_times_that_follow_from_the_graph_are_predicted_without_the_network_and_its_family(study):
    rows = table(catalogue_predictions, study)
    assert len(rows) == len(NAMES)
    assert rows["ratio"].to_numpy() == pytest.approx(np.ones(len(NAMES)), rel=1e-3)
    assert rows["family_ratio"].to_numpy() == pytest.approx(np.ones(len(NAMES)), rel=1e-3)


def test_a_network_like_no_other_is_off_and_does_not_affect_its_own_error(study, tmp_path):
    records = [dict(record) for record in study.records]
    slow = next(r for r in records if r["cell"]["tenants"][0]["model"] == "vgg11")
    slow["full_rps"] /= 3
    other = StudyResults(study.task, tuple(records), (), study.exports)
    ratios = table(catalogue_predictions, other).set_index("model")["ratio"]
    assert ratios["vgg11"] == pytest.approx(1 / 3, rel=1e-3)


def test_a_family_like_no_other_is_off_and_does_not_affect_its_own_error(study):
    """The networks resnet18 and resnet34 belong to one family."""
    records = [dict(record) for record in study.records]
    for record in records:
        if record["cell"]["tenants"][0]["model"] in ("resnet18", "resnet34"):
            record["full_rps"] /= 3
    slow = StudyResults(study.task, tuple(records), (), study.exports)
    rows = table(catalogue_predictions, slow).set_index("model")
    ratios = rows.loc[["resnet18", "resnet34"], "family_ratio"]
    assert list(ratios) == pytest.approx([1 / 3, 1 / 3], rel=1e-3)


@pytest.mark.parametrize("kind", ["server", "setting"])
@pytest.mark.parametrize("faster", [1, 10])
def test_a_fit_uses_one_server_and_one_setting(study, tmp_path, kind, faster):
    """Each network is measured twice: as configured, and on another server or with another setting
    of a grid, on which all networks are faster by the same factor."""
    again = [_again(record, kind, faster) for record in _records_of(NAMES)]
    both = results_of(tmp_path / "both", [*_records_of(NAMES), *again], study.exports)
    rows = table(catalogue_predictions, both)
    assert len(rows) == 2 * len(NAMES) and set(rows["networks"]) == {len(NAMES)}
    assert rows["ratio"].to_numpy() == pytest.approx(np.ones(2 * len(NAMES)), rel=1e-3)
    assert list(rows.groupby(["server", "setting"]).size()) == [len(NAMES)] * 2


def test_a_network_that_failed_on_one_server_is_not_in_the_fit_of_this_server(study, tmp_path):
    failed, *others = _records_of(NAMES)
    failed |= {"full_rps": None, "full_low_rps": None, "full_high_rps": None}
    failed |= {"outcome": "failed", "reason": "no kernel", "limits": []}
    again = _again(_records_of(NAMES[:1])[0], "server", 10)
    mixed = results_of(tmp_path / "mixed", [failed, again, *others], study.exports)
    rows = table(catalogue_predictions, mixed)
    assert list(rows["model"]) == NAMES[1:] and set(rows["server"]) == {"cpu1"}
    assert rows["ratio"].to_numpy() == pytest.approx(np.ones(len(others)), rel=1e-3)


def _records_of(names):
    return [
        synthetic.catalogue_record(name, full_rps=1000 / time_ms(export_of(name))) for name in names
    ]


def _again(record, kind, faster):
    """Return the record of the same network on another server or with another setting."""
    cell = record["cell"]
    rates = {key: faster * record[key] for key in ("full_rps", "full_low_rps", "full_high_rps")}
    if kind == "server":
        return synthetic.on_server(record, "cpu2", cell["server"]["runtime"]) | rates
    (tenant,) = cell["tenants"]
    suffix = "~instances-2"
    moved = {key: cell[key] + suffix for key in ("cell", "scenario")}
    moved |= {"tenants": [tenant | {"name": tenant["name"] + suffix}]}
    precisions = {tenant["name"] + suffix: tenant["precision"]}
    return record | rates | {"cell": cell | moved, "computed_precisions": precisions}


def test_too_few_networks_predict_nothing(study):
    few = StudyResults(study.task, study.records[:6], (), study.exports)
    assert table(catalogue_predictions, few).empty


def test_families_and_factors():
    names = ["resnet18", "wide_resnet50_2", "resnext50_32x4d", "vgg11_bn", "regnet_y_400mf"]
    assert list(map(family, names)) == ["resnet", "resnet", "resnext", "vgg", "regnet"]
    assert within(np.array([0.5, 1.0, 2.0]), 1.0) == pytest.approx(2.0)


def test_the_facts_are_those_of_the_installed_torchvision():
    from perseus.models.torchvision_facts import COLUMNS, rows
    from perseus.study.architectures import FILE

    told = pd.DataFrame(list(rows()), columns=COLUMNS).astype(str)
    kept = pd.read_csv(FILE, dtype=str)
    pd.testing.assert_frame_equal(kept, told)
    assert isinstance(FILE, Path)
