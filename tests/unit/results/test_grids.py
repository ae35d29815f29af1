"""Tests of the ranking of settings: true order, bounds, and differences too small to tell."""

from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
import pytest
import synthetic
import synthetic_files
from scipy import stats

from perseus.host import parquet
from perseus.results import grids, tables
from perseus.results.grids import cheapest, on_front
from perseus.results.repeats import Quantity
from perseus.results.study_results import StudyResults
from perseus.results.tables.grid import TEXTS, WHOLE_NUMBERS
from perseus.study.grid import Vary

THREE = synthetic.Truth(synthetic.TRUTH.capacities, repeats=3)
SURE = synthetic.Truth(synthetic.TRUTH.capacities, between=1e-4, within=1e-3, repeats=1)
MIX = "resnet18 1 : 1 mobilenet_v3_large"


def found(made, **task):
    with TemporaryDirectory() as folder:
        results = synthetic_files.results_of(Path(folder), made, synthetic.grid_task(**task))
        modules = [tables.module_of(name) for name in ("grid", "recommendations")]
        return tuple(
            parquet.table(list(m.rows(results)), m.SCHEMA.arrow).to_pandas() for m in modules
        )


@pytest.fixture(scope="module")
def study():
    return found(synthetic.grid_records(truth=THREE))


def quantity(draws, value=1.0, below=False, above=False):
    return Quantity(value, np.asarray(draws, dtype=float), open_below=below, open_above=above)


# Rankings and Pareto fronts of known draws and points


def test_the_probability_to_be_the_cheapest_is_that_of_known_draws():
    rng = np.random.default_rng(1)
    costs = [quantity(rng.normal(mean, 1, 200_000)) for mean in (10.0, 11.0)]
    expected = stats.norm.cdf(1 / np.sqrt(2))
    assert cheapest(costs) == pytest.approx((expected, 1 - expected), abs=0.005)
    several = [quantity(rng.normal(10, 1, 200_000)) for _ in range(4)]
    assert cheapest(several) == pytest.approx([0.25] * 4, abs=0.005)


def test_draws_go_together():
    """If two costs have the same error, their ratio is exact, even if their intervals are wide."""
    luck = np.random.default_rng(1).lognormal(0, 0.5, 2000)
    one, dearer = quantity(luck, 1.0), quantity(1.02 * luck, 1.02)
    assert cheapest([one, dearer]) == (1.0, 0.0)
    ratio = dearer.over(one).interval()
    assert (ratio.low, ratio.high) == pytest.approx((1.02, 1.02))


def test_without_a_bound_to_a_cost_there_is_no_probability():
    costs = [quantity([1.0, 2.0]), quantity([2.0, 3.0], above=True)]
    assert np.isnan(cheapest(costs)).all() and len(cheapest(costs)) == 2
    assert costs[1].over(costs[0]).interval().high == np.inf
    assert costs[0].over(costs[1]).interval().low == 0
    assert cheapest([]) == ()


@pytest.mark.parametrize("seed", range(20))
def test_the_front_is_what_no_other_point_dominates(seed):
    """The test compares the Pareto front with a brute-force search. Many values are equal."""
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 4, (rng.integers(1, 25), 3)).astype(float)

    def dominates(one, other):
        pairs = list(zip(one, other, strict=True))
        return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)

    expected = tuple(not any(dominates(q, p) for q in points) for p in points)
    assert on_front(points) == expected
    assert any(expected)


# A known truth


def test_settings_are_ranked_by_what_they_cost(study):
    rows, _ = study
    for _, of_question in rows.groupby("mix", sort=False):
        order = ["openvino", "onnxruntime", "pytorch", "tensorrt"]
        assert list(of_question["runtime"]) == order
        assert list(of_question["rank"].dropna()) == [1, 2, 3]
        ratios = of_question["cost_ratio"].iloc[:3]
        assert list(ratios) == pytest.approx([1, 1.5, 1.5 / 0.7], rel=0.05)
        assert (of_question["ratio_low"] <= of_question["cost_ratio"]).iloc[:3].all()
        assert of_question["probability_cheapest"].sum() == pytest.approx(1)
    assert set(rows["mix"]) == {*synthetic.TRUTH.capacities, MIX}


def test_what_is_recommended_is_the_cheapest(study):
    rows, recommendations = study
    assert list(recommendations["mix"]) == [*synthetic.TRUTH.capacities, MIX]
    assert set(recommendations["setting"]) == {"runtime openvino"}
    assert set(recommendations["runner_up"]) == {"runtime onnxruntime"}
    assert set(recommendations["server"]) == {"cpu1~runtime-openvino"}
    assert set(recommendations["verdict"]) == {"clear"}
    assert (recommendations["probability_cheapest"] > 0.95).all()
    assert (recommendations["settings"] == 3).all() and (recommendations["excluded"] == 0).all()
    first = recommendations.iloc[0]
    assert first["recommendation"].startswith("runtime openvino: 0.2")
    assert "runtime onnxruntime costs 1." in first["recommendation"]
    best = rows[rows["rank"] == 1].iloc[0]
    for name in ("usd_per_million_inferences", "ci_low_usd", "certified_rps", "p95_ms"):
        assert first[name] == best[name]


def test_costs_limits_and_latencies_are_those_of_the_other_tables():
    made = synthetic_files.tables_of(synthetic.grid_records(truth=SURE), synthetic.grid_task())
    names = ("grid", "peaks", "costs", "tenants")
    rows, peaks, costs, tenants = (made[name].to_pandas() for name in names)
    on_demand = costs[costs["pricing"] == "on_demand"]
    for _, row in rows[rows["repeats"].notna()].iterrows():

        def mine(of, row=row):
            line = "peak" if row["load_line"] == "peak" else "mix-1-1"
            return of[(of["scenario"] == row["scenario"]) & (of["load_line"] == line)]

        (peak,) = mine(peaks).to_dict("records")
        for name in (
            "estimate_rps",
            "ci_low_rps",
            "ci_high_rps",
            "certified_rps",
            "verdict",
            "preset",
        ):
            assert row[name] == peak[name]
        assert row["p95_ms"] == mine(tenants)["p95_ms"].max()
        if row["load_line"] == "peak" or row["server"] == "cpu1":
            (cost,) = mine(on_demand)["usd_per_million_inferences"]
            assert row["usd_per_million_inferences"] == pytest.approx(cost)


def test_load_lines_are_told_with_the_names_of_the_configuration():
    made = synthetic.records(THREE, holds=(("resnet18", 50),))
    made += synthetic.background_records(THREE, percents=(25,))
    with TemporaryDirectory() as folder:
        peaks = synthetic_files.results_of(Path(folder), made, synthetic.TASK).peaks
        words = {line: peak.mix_of(("a", "b")) for (_, line), peak in peaks.items()}
    assert words["mix-1-1"] == "a 1 : 1 b"
    assert words["hold-resnet18-50"] == "b beside a held at 50 %"
    assert words["background-resnet18-25"] == "a beside b held at 25 %"


def test_a_setting_that_was_left_out_has_a_row_that_says_why(study):
    rows, _ = study
    gone = rows[rows["runtime"] == "tensorrt"]
    assert len(gone) == 3 and set(gone["excluded"]) == {"it needs a GPU"}
    assert set(gone["verdict"]) == {"left_out"}
    assert (
        gone[["rank", "on_front", "estimate_rps", "usd_per_million_inferences"]]
        .isna()
        .all(axis=None)
    )


def test_equal_settings_are_too_close_to_tell():
    equal = {"onnxruntime": 1.0, "openvino": 1.0}
    judged = []
    for seed in range(4):
        _, recommendations = found(synthetic.grid_records(equal, THREE, seed), factors=equal)
        judged += list(
            zip(recommendations["verdict"], recommendations["recommendation"], strict=True)
        )
    clear = [words for verdict, words in judged if verdict == "clear"]
    assert len(judged) == 12 and len(clear) <= 3  # by chance, about 1 verdict in 10 is clear
    assert sum("Too close to tell: " in words for _, words in judged) == len(judged) - len(clear)


def test_a_difference_below_the_noise_of_the_host_is_not_clear(tmp_path):
    close = {"onnxruntime": 1.0, "openvino": 1.15}
    made = synthetic.grid_records(close, SURE)
    _, recommendations = found(made, factors=close)
    assert set(recommendations["verdict"]) == {"clear"}
    assert all(
        "was not measured (experiment `aa`)" in words for words in recommendations["recommendation"]
    )
    cells = [*synthetic_files.write(tmp_path, made), synthetic_files.write_aa(tmp_path)]
    results = StudyResults.read(synthetic.grid_task(close), cells, [])
    noisy = tables.make(results)["recommendations"].to_pandas()
    assert (noisy["probability_cheapest"] > 0.95).all() and (noisy["noise_floor"] > 0.15).all()
    assert set(noisy["verdict"]) == {"too close to tell"}
    assert "may be noise of this host" in noisy["recommendation"].iloc[0]


def test_a_mix_counts_work_not_requests():
    """The fast setting doubles the dedicated peak of one tenant.

    Therefore a larger part of the requests of the mix comes from this tenant than with the slow
    setting.
    """
    slow = dict(zip(synthetic.TRUTH.capacities, (30.0, 90.0), strict=True))
    fast = dict(zip(synthetic.TRUTH.capacities, (30.0, 180.0), strict=True))
    made = []
    for i, (capacities, runtime) in enumerate(((slow, "onnxruntime"), (fast, "openvino"))):
        truth = synthetic.Truth(capacities, between=1e-4, within=1e-3, repeats=1)
        only = synthetic.grid_records({"onnxruntime": 1.0}, truth, i)
        name = "cpu1" if i == 0 else f"cpu1~runtime-{runtime}"
        made += [synthetic.on_server(record, name, runtime) for record in only]
    rows, _ = found(made, factors={"onnxruntime": 1.0, "openvino": 1.0})
    mix = rows[(rows["mix"] == MIX) & rows["rank"].notna()].set_index("runtime")
    # In units of the dedicated peaks of the slow setting, the fast setting carries 0.625 + 1.25,
    # and the slow setting carries 0.625 + 0.625.
    assert mix.loc["onnxruntime", "cost_ratio"] == pytest.approx(1.5, rel=0.02)
    plain = mix.loc["openvino", "estimate_rps"] / mix.loc["onnxruntime", "estimate_rps"]
    assert plain == pytest.approx(1.75, rel=0.02)


# Bounds


def with_errors(made, errors):
    for record in made:
        error = errors[record["cell"]["server"]["runtime"]]
        record["relative_errors"] = dict.fromkeys(record["relative_errors"], error)
    return made


def test_a_bound_on_the_loss_of_accuracy_is_kept():
    errors = {"onnxruntime": 1e-6, "openvino": 0.8, "pytorch": 0.01}
    made = with_errors(synthetic.grid_records(truth=SURE), errors)
    rows, recommendations = found(made, at_most={"relative_error": 0.1})
    assert set(recommendations["setting"]) == {"runtime onnxruntime"}
    assert (recommendations["excluded"] == 1).all()
    broken = rows[rows["runtime"] == "openvino"]
    assert set(broken["excluded"]) == {"relative_error is 0.8, but at_most limits it to 0.1"}
    assert broken["rank"].isna().all() and broken["on_front"].isna().all()
    assert broken["usd_per_million_inferences"].notna().all() and (broken["cost_ratio"] < 1).all()
    _, free = found(made, at_most={"relative_error": 0.8})
    assert set(free["setting"]) == {"runtime openvino"}


@pytest.mark.parametrize("unknown", list(synthetic.TRUTH.capacities))
def test_an_unknown_error_of_any_tenant_is_not_within_a_limit(unknown):
    """A model with `deterministic: false` has no error."""
    made = synthetic.grid_records(truth=SURE)
    for record in made:
        if unknown in record["relative_errors"]:
            record["relative_errors"] |= {unknown: None}
    rows, _ = found(made, at_most={"relative_error": 0.1})
    shared = rows[(rows["mix"] == MIX) & (rows["verdict"] == "ok")]
    assert len(shared) and set(shared["excluded"]) == {
        "relative_error was not measured, but at_most limits it to 0.1"
    }


def test_a_bound_on_latency_is_kept():
    made = synthetic.grid_records(truth=SURE)
    rows, _ = found(made)
    most = rows.groupby("mix")["p95_ms"].min().max()
    bounded, recommendations = found(made, at_most={"p95_ms": float(most)})
    for _, row in bounded[bounded["repeats"].notna()].iterrows():
        assert (row["p95_ms"] > most) == np.isnan(row["rank"])
    kept = recommendations[recommendations["setting"].notna()]
    assert len(kept) and (kept["p95_ms"] <= most).all()


def test_a_bound_on_what_was_not_measured_is_not_kept():
    _, recommendations = found(
        synthetic.grid_records(truth=SURE), at_most={"joules_per_inference": 5.0}
    )
    assert set(recommendations["verdict"]) == {"none"} and recommendations["setting"].isna().all()
    assert (
        "joules_per_inference was not measured, but at_most limits it to 5"
        in (recommendations["recommendation"].iloc[0])
    )


def test_energy_is_bounded_where_it_was_measured():
    made = synthetic.grid_records(truth=SURE)
    for record in made:
        record["gpu_watts"] = 100.0
    rows, _ = found(made)
    joules = rows[rows["mix"] == "resnet18"].set_index("runtime")["joules_per_inference"]
    assert joules["openvino"] < joules["onnxruntime"] < joules["pytorch"]
    most = float(joules["onnxruntime"])
    rows, _ = found(made, at_most={"joules_per_inference": most})
    of_one = rows[rows["mix"] == "resnet18"].set_index("runtime")
    assert list(of_one["rank"].dropna().index) == ["openvino", "onnxruntime"]


# Unsuccessful cells


@pytest.mark.parametrize("outcome", ["uncertified", "infeasible", "failed", "client_limited"])
def test_only_a_setting_with_a_certified_rate_is_recommended(outcome):
    made = [
        synthetic.with_outcome(record, outcome, "for a reason")
        if record["cell"]["server"]["runtime"] == "openvino"
        and record["cell"]["run"]["name"] == "peak"
        else record
        for record in synthetic.grid_records(truth=SURE)
    ]
    rows, recommendations = found(made)
    alone = recommendations[recommendations["mix"] != MIX]
    assert set(alone["setting"]) == {"runtime onnxruntime"}
    excluded = rows[(rows["runtime"] == "openvino") & (rows["mix"] != MIX)]
    words = outcome.replace("_", " ")
    assert set(excluded["excluded"]) == {f"{words}: for a reason"}
    assert set(excluded["verdict"]) == {outcome}


def test_where_nothing_was_certified_nothing_is_recommended_and_it_is_said_why():
    made = [
        synthetic.with_outcome(r, "failed", "the server died")
        for r in synthetic.grid_records(truth=SURE)
    ]
    rows, recommendations = found(made)
    assert set(recommendations["verdict"]) == {"none"} and rows["rank"].isna().all()
    words = recommendations["recommendation"].iloc[0]
    assert words.startswith("No setting can be recommended (runtime onnxruntime: failed:")
    assert words.count("the server died") == 3


def test_where_one_is_left_it_is_called_the_only_one():
    errors = {"onnxruntime": 1e-6, "openvino": 0.8, "pytorch": 0.9}
    made = with_errors(synthetic.grid_records(truth=SURE), errors)
    _, recommendations = found(made, at_most={"relative_error": 0.1})
    assert set(recommendations["verdict"]) == {"only one"}
    assert (
        "Of 3 settings, only this setting can be recommended"
        in recommendations["recommendation"].iloc[0]
    )
    assert recommendations[["runner_up", "cost_ratio"]].isna().all(axis=None)


def test_a_server_without_the_first_price_is_not_recommended():
    task = synthetic.grid_task()
    free = synthetic.PRICE.model_copy(update={"spot_usd_per_hour": None})
    prices = {**task.prices, "cpu1~runtime-openvino": free}
    task = task.model_copy(update={"prices": prices, "pricing": ("spot",)})
    made = synthetic_files.tables_of(synthetic.grid_records(truth=SURE), task)
    recommendations = made["recommendations"].to_pandas()
    assert set(recommendations["setting"]) == {"runtime onnxruntime"}
    assert "its cost is unknown" in set(made["grid"].to_pandas()["excluded"])


def test_without_a_grid_the_tables_are_empty():
    made = synthetic_files.tables_of(synthetic.records())
    assert made["grid"].num_rows == made["recommendations"].num_rows == 0


def test_lines_of_other_experiments_are_no_questions():
    task = synthetic.grid_task()
    loops = task.grids[-1].model_copy(update={"load_line": "concurrency"})
    settings = [s.model_copy(update={"load_line": "concurrency"}) for s in loops.settings]
    loops = loops.model_copy(update={"settings": tuple(settings)})
    task = task.model_copy(update={"grids": (*task.grids, loops)})
    made = synthetic_files.tables_of(synthetic.grid_records(truth=SURE), task)
    assert made["recommendations"].num_rows == 3


def test_every_key_that_may_be_varied_has_a_column():
    assert sorted((*WHOLE_NUMBERS, *TEXTS)) == sorted(Vary.model_fields)
    assert set(Vary.model_fields) < set(tables.module_of("grid").SCHEMA.names)


@pytest.mark.parametrize("ms", [(np.nan, 50.0, 80.0), (50.0, np.nan, 80.0), (80.0, 50.0, np.nan)])
def test_the_latency_of_a_setting_is_that_of_its_tenants_with_load(ms):
    rows = [
        {"phase": "certify", "offered_rps": 0.0 if np.isnan(each) else 9.0, "p95_ms": each}
        for each in ms
    ]
    peak = SimpleNamespace(records=[SimpleNamespace(folder="cell")])
    assert grids._p95_ms(peak, SimpleNamespace(certified_windows={"cell": rows})) == 80.0
    assert np.isnan(grids._p95_ms(peak, SimpleNamespace(certified_windows={"cell": []})))
