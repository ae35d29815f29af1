"""Tests that the tables compare predicted with measured sharing ratios, for synthetic studies with
known ratios."""

from dataclasses import replace

import pytest
import synthetic
from synthetic_files import results_of, tables_of

from perseus.results import predictions
from perseus.results.check import problems
from perseus.results.predictions import shared_servers
from perseus.results.repeats import dedicated_peaks

SIX = synthetic.Truth(
    {name: 40.0 + 10 * i for i, name in enumerate("abcdef")}, gain=0.9, repeats=1, within=0.01
)
"""Shares of peaks add up to 0.9 in every mix."""


def pair(first, second):
    return tuple(int(i in (first, second)) for i in range(6))


MIXES = ((1,) * 6, pair(0, 1), pair(2, 3), pair(4, 5), pair(0, 5))


@pytest.fixture(scope="module")
def tables():
    made = tables_of(synthetic.records(SIX, mixes=MIXES, holds=()))
    return {name: made[name].to_pandas() for name in ("predictions", "prediction_errors")}


def test_every_measured_mix_and_every_other_pair_has_a_row(tables):
    mixes = tables["predictions"]
    measured = mixes["measured_ratio"].notna()
    assert (measured.sum(), (~measured).sum()) == (5, 11)
    assert mixes["mix"].is_unique
    assert set(mixes["mixes_known"][measured]) == {4} and set(mixes["mixes_known"][~measured]) == {
        5
    }


def test_shares_predict_what_adds_up_to_a_constant(tables):
    mixes = tables["predictions"]
    assert mixes["b1_ratio"].sub(0.9).abs().max() < 0.05
    assert mixes["predicted_ratio"].sub(0.9).abs().max() < 0.05
    assert (mixes["predicted_low"] < mixes["predicted_ratio"]).all()
    assert (mixes["predicted_ratio"] < mixes["predicted_high"]).all()
    measured = mixes[mixes["measured_ratio"].notna()]
    error = measured["predicted_ratio"] / measured["measured_ratio"] - 1
    assert measured["error"].to_numpy() == pytest.approx(error.to_numpy())


def test_the_error_of_each_step_is_that_of_mixes_left_out(tables):
    errors = tables["prediction_errors"].set_index(["step", "left_out"])
    assert errors.loc[("B1", "mix"), "median_error"] < 0.05
    assert errors.loc[("B1", "mix"), "predictions"] == 5
    # Each mix is predicted once for each of its models: four pairs, and the mix of six models.
    assert errors.loc[("B1", "model"), "predictions"] == 4 * 2 + 6
    assert not any(out == "server" for step, out in errors.index if step == "B1")


def test_few_mixes_are_told_without_an_error():
    made = tables_of(synthetic.records())["predictions"].to_pandas()
    assert set(made["reason"]) == {
        "a prediction needs measurements of at least 4 other mixes (mixes of copies of one"
        " model do not count), and Perseus measured 2"
    }
    assert made["predicted_ratio"].isna().all() and made["b0_ratio"].notna().all()


def test_copies_of_a_model_are_not_counted_among_the_mixes_that_are_needed():
    made = synthetic.records(SIX, mixes=MIXES, holds=())
    for record in made:
        for tenant in record["cell"]["tenants"]:
            tenant["model"] = "a" if tenant["name"] == "f" else tenant["model"]
    rows = tables_of(made)["predictions"].to_pandas()
    few = (
        "a prediction needs measurements of at least 4 other mixes (mixes of copies of one"
        " model do not count), and Perseus measured 3"
    )
    assert set(rows["reason"][rows["measured_ratio"].notna()]) == {few}


def test_of_mixes_of_the_same_models_the_most_even_one_counts(tmp_path):
    """Tenants of the same models give the same mix, also if the tenants have other names."""
    made = synthetic.records(SIX, mixes=((3, 1, 0, 0, 0, 0), *MIXES), holds=())
    for record in made:
        for tenant in record["cell"]["tenants"]:
            tenant["model"] = {"e": "a", "f": "b"}.get(tenant["name"], tenant["model"])
    results = results_of(tmp_path, made)
    peaks = list(results.peaks.values())
    (server,) = shared_servers(peaks, dedicated_peaks(peaks), {})
    # the models a and b have four mixes: one mix 3 : 1, and three mixes 1 : 1
    assert len(server.measured) == 6
    assert [set(each.shared.shares) for each in server.one_of_each] == [{1 / 6}, {1 / 2}, {1 / 2}]


def test_many_mixes_of_one_pair_tell_no_more_of_others_than_one_does():
    """The errors of these mixes are correlated, so they do not show the error of other mixes."""
    first = ((1, 1, 0, 0, 0, 0), (2, 1, 0, 0, 0, 0), (1, 2, 0, 0, 0, 0), (3, 1, 0, 0, 0, 0))
    mixes = (*first, (1, 3, 0, 0, 0, 0), pair(2, 3))
    made = tables_of(synthetic.records(SIX, mixes=mixes, holds=()))["predictions"].to_pandas()
    measured = made["measured_ratio"].notna()
    assert (measured.sum(), (~measured).sum()) == (6, 13)
    others = made[~measured]
    assert others["predicted_ratio"].isna().all() and set(others["mixes_known"]) == {2}
    told = (
        "a prediction needs measurements of at least 4 other groups of models (mixes of copies of"
        " one model do not count), and Perseus measured 2"
    )
    assert set(others["reason"]) == {told}
    assert made["predicted_ratio"][measured].notna().all()


def test_a_mix_that_two_lines_measured_has_one_row_and_does_not_predict_itself():
    """For example, a frontier chooses a mix that the study already contains."""
    once = tables_of(synthetic.records(SIX, mixes=MIXES, holds=()))["predictions"].to_pandas()
    twice = tuple(2 * weight for weight in MIXES[0])
    made = tables_of(synthetic.records(SIX, mixes=[*MIXES, twice], holds=()))["predictions"]
    again = made.to_pandas()
    assert list(again["mix"]) == list(once["mix"]) and again["mix"].is_unique
    assert list(again["mixes_known"]) == list(once["mixes_known"])


def test_a_study_without_shared_servers_has_none():
    made = synthetic.records(mixes=(), holds=())
    assert not len(tables_of(made)["predictions"])


def test_a_tenant_without_a_dedicated_peak_is_in_no_pair(tmp_path):
    made = synthetic.with_lost(synthetic.records(SIX, mixes=MIXES, holds=()), "peak", "disturbed")
    results = results_of(tmp_path, made)
    (server,) = shared_servers(list(results.peaks.values()), {}, {})
    assert not server.measured and not server.pairs


def test_a_predicted_mix_is_used_as_an_estimate_told_as_such_and_predicts_no_other():
    made = [
        synthetic.predicted(each) if each["cell"]["run"]["name"] == "mix-1-0-0-0-0-1" else each
        for each in synthetic.records(SIX, mixes=MIXES, holds=())
    ]
    tables = tables_of(made)
    assert not problems(tables, {})
    peaks = tables["peaks"].to_pandas().set_index("load_line")
    line = peaks.loc["mix-1-0-0-0-0-1"]
    assert line["verdict"] == "predicted" and line["sharing_ratio"] == pytest.approx(0.9, rel=0.1)
    assert line["certified_rps"] != line["certified_rps"]
    mixes = tables["predictions"].to_pandas().set_index("mix")
    assert mixes.loc["a 1 : f 1", "measured_ratio"] != mixes.loc["a 1 : f 1", "measured_ratio"]
    assert set(mixes["mixes_known"]) == {3, 4}


@pytest.fixture(scope="module")
def with_infeasible():
    """Return six measured pairs, one of which misses its SLA at every rate."""
    mixes = [pair(0, 1), pair(2, 3), pair(4, 5), pair(0, 5), pair(1, 2), pair(0, 4)]
    return [
        synthetic.with_outcome(each, "infeasible", "the SLA fails at every rate tested")
        if each["cell"]["run"]["name"] == "mix-1-0-0-0-1-0"
        else each
        for each in synthetic.records(SIX, mixes=mixes, holds=())
    ]


def test_a_mix_that_carried_nothing_was_measured_and_no_step_is_said_to_foretell_it(
    with_infeasible,
):
    made = tables_of(with_infeasible)
    assert not problems(made, {})
    mixes = made["predictions"].to_pandas().set_index("mix")
    assert "a 1 : e 1" not in mixes.index and len(mixes) == 14
    # One of the six measured mixes is infeasible, which is more than one in ten.
    assert mixes["predicted_ratio"].isna().all()
    told = "missed an SLA at every load, and no prediction model can predict such a result"
    assert set(mixes["reason"][mixes["mixes_known"] >= 4]) == {
        f"1 of the other mixes {told}",
        f"1 of the other groups of models {told}",
    }
    assert set(made["prediction_errors"].to_pandas()["infeasible"]) == {1}


def test_a_mix_of_which_another_line_found_the_limit_did_not_carry_nothing(with_infeasible):
    """For example, a frontier chooses a mix that the study already contains."""
    again = [
        each
        for each in synthetic.records(SIX, mixes=[tuple(2 * w for w in pair(0, 4))], holds=())
        if each["weights"] != [1]
    ]
    made = tables_of([*with_infeasible, *again])
    assert set(made["prediction_errors"].to_pandas()["infeasible"]) == {0}
    assert made["predictions"].to_pandas()["predicted_ratio"].notna().all()


def test_a_pair_that_another_preset_measured_is_not_said_to_lack_a_measurement(tmp_path):
    def with_preset(each, preset):
        names = {name: f"{each['cell'][name]}-{preset}" for name in ("cell", "scenario")}
        return each | {"cell": each["cell"] | {"preset": preset} | names}

    first = synthetic.records(SIX, mixes=MIXES, holds=())
    other = synthetic.records(SIX, mixes=[pair(1, 2)], holds=())
    for presets in (("quick", "standard"), ("quick", "smoke")):
        both = [
            with_preset(each, preset)
            for made, preset in zip((first, other), presets, strict=True)
            for each in made
        ]
        peaks = list(results_of(tmp_path / presets[1], both).peaks.values())
        servers = {each.preset: each for each in shared_servers(peaks, dedicated_peaks(peaks), {})}
        pairs = {weights for weights, _ in servers["quick"].pairs}
        assert ((("b", 1), ("c", 1)) in pairs) == ("smoke" in presets)


def test_a_measured_pair_is_one_however_many_were(monkeypatch):
    """Predictions use at most MAX_MIXES measured mixes. The table must not list further measured
    mixes as unmeasured."""
    monkeypatch.setattr(predictions, "MAX_MIXES", 4)
    made = tables_of(synthetic.records(SIX, mixes=MIXES, holds=()))["predictions"].to_pandas()
    assert made["measured_ratio"].notna().sum() == 4
    measured = {"a 1 : b 1", "c 1 : d 1", "e 1 : f 1", "a 1 : f 1"}
    assert not measured & set(made["mix"][made["measured_ratio"].isna()])


def test_intervals_without_an_end_state_no_error_and_it_is_said_why():
    made = [
        synthetic.with_outcome(each, "disturbed", "others ran")
        if each["cell"]["repeat"] == 2 and len(each["cell"]["tenants"]) > 1
        else each
        for each in synthetic.records(replace(SIX, repeats=2), mixes=MIXES, holds=())
    ]
    mixes = tables_of(made)["predictions"].to_pandas()
    assert mixes["predicted_ratio"].isna().all() and mixes["within"].isna().all()
    assert set(mixes["reason"]) == {
        "none of the other mixes has a sharing ratio whose interval has two finite ends",
        "none of the other groups of models has a sharing ratio whose interval has two finite ends",
    }


def test_a_prediction_says_whether_measuring_tells_more():
    """The sharing ratios of the measured mixes are equal, or differ by much more than their
    uncertainty."""
    alike = (0.9, 0.9, 0.9, 0.9, 0.9)
    for gains, is_enough in ((alike, True), ((0.6, 0.8, 1.0, 1.2, 1.4), False)):
        made = synthetic.records(SIX, mixes=MIXES, holds=())
        for each in made:
            (name, *others) = [tenant["name"] for tenant in each["cell"]["tenants"]]
            true = gains[MIXES.index(tuple(each["weights"]))] if others else SIX.capacities[name]
            off = true / each["estimate_scale"]
            each["estimate_scale"] = true
            each["posterior_scales"] = [off * scale for scale in each["posterior_scales"]]
        rows = tables_of(made)["predictions"].to_pandas()
        assert rows["predicted_ratio"].notna().all()
        assert set(rows["as_measured"]) == {is_enough}
