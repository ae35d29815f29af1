"""Tests that runtimes are ranked only among runtimes that compute in the same precision."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import synthetic
import synthetic_files

from perseus.host import parquet
from perseus.results.tables import runtimes

THREE = synthetic.Truth(synthetic.TRUTH.capacities, repeats=3)


def table(made):
    with TemporaryDirectory() as folder:
        results = synthetic_files.results_of(Path(folder), made, synthetic.grid_task())
        found = list(runtimes.rows(results))
        return parquet.table(found, runtimes.SCHEMA.arrow).to_pandas()


@pytest.fixture(scope="module")
def made():
    return synthetic.grid_records(truth=THREE)


def computed_in(record, precision, asked=None):
    """Return a record whose networks were computed in this precision."""
    cell = record["cell"]
    tenants = [each | {"precision": asked or precision} for each in cell["tenants"]]
    told = {each["name"]: precision for each in tenants}
    return record | {"cell": cell | {"tenants": tenants}, "computed_precisions": told}


def with_openvino_in(made, precision, asked=None):
    return [
        computed_in(record, precision, asked)
        if record["cell"]["server"]["runtime"] == "openvino"
        else record
        for record in made
    ]


def of(found, model="resnet18"):
    return found[found["model"] == model].set_index("runtime")


def test_the_fastest_at_equal_precision_comes_first_with_what_the_others_carry(made):
    rows = of(table(made))
    assert list(rows.index) == ["openvino", "onnxruntime", "pytorch"]
    assert list(rows["rank"]) == [1, 2, 3]
    assert rows["rate_ratio"].tolist() == pytest.approx([1, 1 / 1.5, 0.7 / 1.5], rel=0.05)
    assert rows["probability_fastest"].tolist() == pytest.approx([1, 0, 0], abs=0.01)
    assert rows["fp32_ratio"].isna().all()


def test_a_runtime_in_bf16_has_a_ranking_of_its_own_and_is_not_faster_than_others(made):
    rows = of(table(with_openvino_in(made, "bf16")))
    assert rows["rank"].to_dict() == {"onnxruntime": 1, "pytorch": 2, "openvino": 1}
    assert rows.loc["openvino", "rate_ratio"] == 1
    assert rows.loc["openvino", "fp32_ratio"] == pytest.approx(1.5, rel=0.05)


def test_a_bf16_setting_computed_in_fp32_is_compared_with_fp32(made):
    rows = of(table(with_openvino_in(made, "fp32", asked="bf16")))
    assert rows.loc["openvino", "asked_precision"] == "bf16"
    assert rows["rank"].to_dict() == {"openvino": 1, "onnxruntime": 2, "pytorch": 3}


def test_a_runtime_without_a_limit_has_a_row_with_its_reason_and_no_rank(made):
    lost = [
        synthetic.with_outcome(record, "failed", "the server died")
        if record["cell"]["server"]["runtime"] == "pytorch"
        else record
        for record in made
    ]
    rows = of(table(lost))
    assert rows["rank"].isna().to_dict() == {"openvino": False, "onnxruntime": False,
                                             "pytorch": True}  # fmt: skip
    assert rows.loc["pytorch", "reason"].endswith("the server died")


def test_settings_other_than_runtime_and_precision_are_no_question_of_runtimes(made):
    one = [r for r in made if r["cell"]["server"]["runtime"] == "onnxruntime"]
    assert table(one).empty
    more = [synthetic.on_server(r, "cpu2", "openvino") for r in one]
    for record in more:
        record["cell"]["server"]["cores"] = 2
    assert table([*one, *more]).empty
