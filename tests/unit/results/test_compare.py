"""Tests of the comparison of two results: known truths, planted differences, missing results."""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import synthetic
import synthetic_files

from perseus.host import parquet
from perseus.peak.stats import Interval
from perseus.results import archive
from perseus.results.check import ContradictionError, check_comparison
from perseus.results.compare.asked import compare_task
from perseus.results.compare.gate import WorseError, gate
from perseus.results.compare.host_noise import (
    FROM_AA,
    FROM_PRIOR,
    FROM_REPEATS,
    repeated_peaks,
)
from perseus.results.compare.judge import judge, simultaneous_half_width
from perseus.results.compare.lines import of_interval
from perseus.results.compare.pairs import PEAK, ComparedPair
from perseus.results.compare.source import CompareError, read_source
from perseus.results.compare.table import SCHEMA, compare
from perseus.results.repeats import Quantity

TRUTH = synthetic.Truth(synthetic.TRUTH.capacities, repeats=3)
FASTER = replace(TRUTH, capacities={name: 1.3 * rps for name, rps in TRUTH.capacities.items()})
SLOWER = replace(TRUTH, capacities={name: rps / 1.3 for name, rps in TRUTH.capacities.items()})
COMPARED = ("peak", "sharing_ratio", "cost", "p95")


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    """Return folders of results by name. Tests only read the folders."""
    root = tmp_path_factory.mktemp("studies")
    dear = synthetic.TASK.prices["cpu1"].model_copy(update={"on_demand_usd_per_hour": 0.095})
    dearer = synthetic.TASK.model_copy(update={"prices": {"cpu1": dear}})
    single = replace(TRUTH, repeats=1)
    made = {
        "base": (synthetic.records(TRUTH, 1), synthetic.TASK),
        "same": (synthetic.records(TRUTH, 2), synthetic.TASK),
        "faster": (synthetic.records(FASTER, 2), synthetic.TASK),
        "slower": (synthetic.records(SLOWER, 2), synthetic.TASK),
        "dear": (synthetic.records(TRUTH, 2), dearer),
        "single": (synthetic.records(single, 3), synthetic.TASK),
        "other_single": (synthetic.records(replace(FASTER, repeats=1), 4), synthetic.TASK),
    }
    return {
        name: synthetic_files.write_study(root / name, records, task)
        for name, (records, task) in made.items()
    }


@pytest.fixture(scope="module")
def compared(studies):
    """Return a function that compares two studies by name and returns the table."""

    def table(base: str, new: str) -> pd.DataFrame:
        sources = read_source(studies[base]), read_source(studies[new])
        return compare(*sources, draws=2000).table.to_pandas()

    return table


def verdicts(table, metric):
    return set(table[table["metric"] == metric]["verdict"])


def written(tmp_path, made, name="new", **told):
    return read_source(synthetic_files.write_study(tmp_path / name, made, **told))


def with_tenant(record, **change):
    """Return the record with a change in every tenant."""
    tenants = [tenant | change for tenant in record["cell"]["tenants"]]
    return record | {"cell": record["cell"] | {"tenants": tenants}}


# --- differences


def test_the_same_measured_twice_shows_no_difference(compared):
    table = compared("base", "same")
    assert set(table["verdict"]) == {"no difference"}
    assert (table["simultaneous_low"] <= table["ci_low"]).all()
    assert (table["simultaneous_high"] >= table["ci_high"]).all()
    assert (table["compared"] == len(table)).all()


def test_a_faster_server_is_better_a_slower_one_worse_and_costs_follow(compared):
    for new, verdict, factor in (("faster", "better", 1.3), ("slower", "worse", 1 / 1.3)):
        table = compared("base", new)
        for metric in ("peak", "overall", "cost"):
            assert verdicts(table, metric) == {verdict}
        assert verdicts(table, "sharing_ratio") == {"no difference"}
        peaks = table[table["metric"] == "peak"]
        assert peaks["ratio"].to_numpy() == pytest.approx(factor, rel=0.08)
        inside = (peaks["simultaneous_low"] < factor) & (factor < peaks["simultaneous_high"])
        assert inside.all()
        costs = table[table["metric"] == "cost"]
        assert costs["ratio"].to_numpy() == pytest.approx(1 / factor, rel=0.08)


def test_the_other_way_round_is_the_inverse(compared):
    there, back = compared("base", "faster"), compared("faster", "base")
    of_peaks = [table[table["metric"] == "peak"]["ratio"].to_numpy() for table in (there, back)]
    assert of_peaks[0] * of_peaks[1] == pytest.approx(1, rel=0.02)
    assert verdicts(back, "peak") == {"worse"}


def test_a_price_that_doubles_is_worse_and_nothing_else_is(compared):
    table = compared("base", "dear")
    costs = table[table["metric"] == "cost"].set_index("pricing")
    assert set(costs.loc["on_demand", "verdict"]) == {"worse"}
    assert set(costs.loc["spot", "verdict"]) == {"no difference"}
    assert verdicts(table, "peak") == {"no difference"}
    ratio = table[table["metric"] == "peak"]["ratio"].to_numpy()
    assert costs.loc["on_demand", "ratio"].to_numpy() == pytest.approx(2 / ratio)


def test_latencies_at_other_rates_are_not_compared(compared):
    table = compared("base", "faster")
    p95s = table[table["metric"] == "p95"]
    assert set(p95s["verdict"]) == {"not comparable"}
    assert p95s["reason"].str.startswith("the certified rates differ: ").all()


def test_a_latency_that_rises_at_the_same_rate_is_worse(studies, tmp_path):
    tables = {"tenants": pd.read_parquet(studies["same"] / "tables/tenants.parquet")}
    of = tables["tenants"]["tenant"] == "resnet18"
    for column in ("p95_ms", "p95_low_ms", "p95_high_ms"):
        tables["tenants"].loc[of, column] *= 1.6
    table = compare(read_source(studies["base"]), edited(studies["same"], tables)).table.to_pandas()
    p95s = table[table["metric"] == "p95"].set_index("tenant")
    assert set(p95s.loc["resnet18", "verdict"]) == {"worse"}
    assert set(p95s.loc["mobilenet_v3_large", "verdict"]) == {"no difference"}


def test_tenants_without_load_have_no_latency_that_could_be_compared(tmp_path):
    truth = synthetic.Truth({"a": 30.0, "b": 90.0, "c": 50.0}, bootstraps=50)
    made = synthetic.records(truth, mixes=[(1, 1, 0)], holds=())
    table = compare(
        *(written(tmp_path, made, name) for name in ("base", "new")), draws=200
    ).table.to_pandas()
    of_mix = table[(table["metric"] == "p95") & (table["load_line"] == "mix-1-1-0")]
    assert list(of_mix["tenant"]) == ["a", "b"]
    assert not table["reason"].str.contains("no certified rate").any()


def edited(folder, tables):
    """Return the results of a folder, in which `tables` replace some tables."""
    source = read_source(folder)
    return replace(source, tables={**source.tables, **tables})


def test_mixes_are_compared_in_the_proportion_of_the_base(tmp_path):
    """If the estimate of a dedicated peak is 20 % too high, the tenant has a larger part of a mix.

    Then the total rate at the limit changes, although the speed of the server is the same.
    """
    exact = replace(TRUTH, between=0.0, within=1e-4)
    made = synthetic.records(exact, 1, mixes=[(1, 1)], holds=())
    leaning = [dict(record) for record in synthetic.records(exact, 2, mixes=[(1, 1)], holds=())]
    for record in leaning:
        if len(record["cell"]["tenants"]) > 1:
            base, direction = record["line"].values()
            stretch = (2 * 1.25) / (1.2 + 1)  # sharing ratio / sum of the shares at load factor 1
            scale = stretch * record["estimate_scale"] / 1.25
            scatter = np.array(record["posterior_scales"]) / record["estimate_scale"]
            record["line"] = {"base_rps": base, "direction_rps": [1.2 * direction[0], direction[1]]}
            record["estimate_scale"] = scale
            record["posterior_scales"] = (scale * scatter).tolist()
    found = compare(written(tmp_path, made, "base"), written(tmp_path, leaning))
    (mix,) = [each for each in found.judged if each.pair.metric == PEAK
              and each.pair.line.row["kind"] == "mix"]  # fmt: skip
    totals = [synthetic.loaded(records)[-1] for records in (made, leaning)]
    plain = [float(record.rates_rps(record.estimate_scale).sum()) for record in totals]
    assert abs(plain[1] / plain[0] - 1) > 0.03
    assert mix.interval.value == pytest.approx(1, abs=0.002)


# --- noise


def test_what_lies_between_repeats_comes_from_repeats_or_aa_or_what_hosts_are_like(
    studies, tmp_path
):
    base, single = (read_source(studies[name]) for name in ("base", "single"))
    assert compare(base, single, draws=500).noise.known_from == FROM_REPEATS
    alone = compare(single, read_source(studies["other_single"]), draws=500)
    assert alone.noise.known_from == FROM_PRIOR and alone.noise.floors == {}
    # A factor of 1.3 between servers is within the usual host drift.
    assert not [each for each in alone.judged if each.verdict in ("better", "worse")]
    aa = with_aa(single, deviation=0.01)
    measured = compare(aa, read_source(studies["other_single"]), draws=500)
    assert measured.noise.known_from == FROM_AA
    assert "better" in {each.verdict for each in measured.judged if each.pair.metric == PEAK}


def with_aa(source, deviation, floor=0.05, server="cpu1"):
    """Return the results with an experiment `aa` on five servers."""
    rates = 100 * np.exp(deviation * np.array([-1.2, -0.6, 0.0, 0.6, 1.2]))
    rows = {"server": server, "cell": "cpu1.shared.aa.r1", "windows": 3, "answered_rps": rates}
    rows |= {"low_rps": 0.999 * rates, "high_rps": 1.001 * rates, "noise_floor": floor}
    return replace(source, tables={**source.tables, "aa": pd.DataFrame(rows)})


@pytest.mark.parametrize("where", [["base"], ["new"], ["base", "new"]])
def test_predictions_are_compared_with_nothing(tmp_path, where):
    """A predicted peak follows from measured load lines, which the comparison already contains."""

    def made(name, seed):
        records = synthetic.records(synthetic.TRUTH, seed, mixes=((1, 1), (3, 1)), holds=())
        return [
            synthetic.predicted(each) if name in where and each["weights"] == [1, 1] else each
            for each in records
        ]

    sources = [written(tmp_path, made(name, i), name) for i, name in enumerate(("base", "new"))]
    table = compare(*sources, draws=500).table.to_pandas()
    rows = table[table["load_line"] == "mix-1-1"]
    assert set(rows["verdict"]) == {"not comparable"}
    assert set(rows["reason"]) == {f"predicted, not measured, in {' and '.join(where)}"}
    others = table[(table["load_line"] == "mix-3-1") & (table["metric"] == "peak")]
    assert set(others["verdict"]) == {"no difference"}


def test_repeats_of_a_prediction_tell_nothing_of_the_host(studies):
    source = read_source(studies["base"])
    assert list(repeated_peaks(source))
    predicted = [each.model_copy(update={"outcome": "predicted"}) for each in source.records]
    assert not list(repeated_peaks(replace(source, records=tuple(predicted))))


def test_each_server_is_compared_with_its_own_noise(tmp_path):
    """The noise of one server (10 %) hardly changes the estimated noise of another (0.5 %)."""
    prices = dict.fromkeys(("cpu1", "noisy"), synthetic.PRICE)
    task = synthetic.TASK.model_copy(update={"prices": prices})
    quiet, noisy = (replace(TRUTH, between=each, within=0.005) for each in (0.005, 0.1))
    sources = [
        written(tmp_path, [*synthetic.records(quiet, seed),
                           *(synthetic.on_server(each, "noisy", "onnxruntime")
                             for each in synthetic.records(noisy, 10 + seed))], name, task=task)
        for seed, name in enumerate(("base", "new"))
    ]  # fmt: skip
    found = compare(*sources, draws=2000)
    told = {name: np.median(draws) for name, draws in found.noise.deviations.items()}
    assert told["cpu1"] < 0.02 and 0.05 < told["noisy"] < 0.2
    spreads = {
        server: [np.log(each.pair.ratio.draws).std() for each in found.judged
                 if each.pair.metric == PEAK and each.pair.line.row["server"] == server]
        for server in told
    }  # fmt: skip
    assert min(spreads["noisy"]) > 3 * max(spreads["cpu1"])


def test_a_difference_within_the_noise_floor_is_none(studies):
    """The noise floor of three repeats is the noise floor of single cells, divided by the square
    root of three."""
    base, faster = (read_source(studies[name]) for name in ("base", "faster"))
    for floor, verdict in ((0.3, "better"), (1.2, "no difference")):
        found = compare(with_aa(base, 0.01, floor), faster, draws=1000)
        peaks = [each for each in found.judged if each.pair.metric == PEAK]
        assert {each.verdict for each in peaks} == {verdict}
        assert peaks[0].pair.floor == pytest.approx(floor / np.sqrt(3))
    elsewhere = compare(with_aa(base, 0.01, 1.2, server="cpu2"), faster, draws=1000)
    assert "better" in {each.verdict for each in elsewhere.judged}


def test_studies_have_random_streams_of_their_own(studies):
    """If both studies had the same random stream, the ratio of equal results would have draws
    without a spread."""
    source = read_source(studies["base"])
    for each in compare(source, source, draws=2000).judged:
        if each.pair.metric == PEAK:
            spread = np.log(each.pair.ratio.draws).std()
            single = np.log(each.pair.base.draws).std()
            assert spread == pytest.approx(np.sqrt(2) * single, rel=0.1)


# --- many rows at once


def rows_of(spread, centre, count, rng, draws=4000):
    """Return pairs whose ratios are around exp(centre), with independent draws."""
    one = Quantity(1.0, np.ones(draws), open_below=False, open_above=False)
    logs = centre[:, None] + spread * rng.standard_normal((count, draws))
    return [
        ComparedPair(PEAK, None, one, Quantity(float(np.exp(c)), np.exp(row), False, False), (3, 3))
        for c, row in zip(centre, logs, strict=True)
    ]


def test_of_100_comparisons_of_many_rows_about_5_find_something():
    """Each comparison has 40 independent rows with known errors."""
    rng = np.random.default_rng(0)
    flagged = sum(
        any(each.verdict != "no difference" for each in judge(rows_of(0.02, centre, 40, rng, 1000)))
        for centre in 0.02 * rng.standard_normal((300, 40))
    )
    assert 0.02 * 300 <= flagged <= 0.09 * 300


def test_reach_is_that_of_bonferroni_for_independent_rows_and_of_one_for_equal_rows():
    rng = np.random.default_rng(1)
    logs = rng.standard_normal((20, 20_000))
    assert simultaneous_half_width(logs) == pytest.approx(3.02, abs=0.05)  # z(1 - 0.05 / 40)
    equal = np.repeat(logs[:1], 20, axis=0) * np.arange(1, 21)[:, None]
    assert simultaneous_half_width(equal) == pytest.approx(1.96, abs=0.05)


def test_rows_that_tie_or_do_not_vary_are_no_difference():
    one = Quantity(1.0, np.ones(100), open_below=False, open_above=False)
    (tied,) = judge([ComparedPair(PEAK, None, one, one, (1, 1))])
    assert (tied.verdict, tied.simultaneous) == ("no difference", Interval(1.0, 1.0, 1.0))
    assert judge([]) == []


def test_an_open_end_bounds_nothing():
    """A lost repeat might have a lower result, so the new study is not certainly better."""
    rng = np.random.default_rng(2)
    (pair,) = rows_of(0.01, np.array([0.5]), 1, rng)
    assert judge([pair])[0].verdict == "better"
    lost = replace(pair, new=replace(pair.new, open_below=True))
    assert judge([lost])[0].verdict == "no difference"
    assert judge([lost])[0].simultaneous.low == 0
    lost = replace(pair, base=replace(pair.base, open_below=True))
    assert judge([lost])[0].simultaneous.high == np.inf
    assert judge([lost])[0].verdict == "better"


# --- rows that cannot be compared


def reasons(tmp_path, base, new, **told):
    """Return the reason why two studies are not compared, for every peak."""
    found = compare(written(tmp_path, base, "base"), written(tmp_path, new, **told), draws=500)
    return {
        (each.pair.line.row["scenario"], each.pair.line.row["load_line"]): each.pair.why_not
        for each in found.judged
        if each.pair.metric == PEAK
    }


def test_what_was_asked_otherwise_is_not_comparable(tmp_path):
    base = synthetic.records(TRUTH, 1, mixes=[(1, 1)], holds=())
    sla = {"sla": {"percentile": 99.0, "latency_ms": 80.0}}
    for i, (change, why) in enumerate(
        (
            (sla, "another SLA: p95 <= 120 ms in base, p99 <= 80 ms in new"),
            ({"request_batch_size": 4}, "requests of another size: 1 in base, 4 in new"),
            (
                {"model": "vgg11"},
                "other models: resnet18: resnet18 in base, resnet18: vgg11 in new",
            ),
            ({"preprocessing": "server"}, "another input: 6e+05 bytes in base, 6e+05 bytes server"),
        )
    ):
        new = [with_tenant(record, **change) for record in base]
        found = reasons(tmp_path / str(i), base, new)
        assert found["cpu1.resnet18", "peak"].startswith(why)


def test_the_mix_of_a_demand_is_the_same_whatever_the_dedicated_peaks_were(tmp_path):
    """The weights of the mix depend on the dedicated peaks, but the ratio of its rates does not."""
    three = replace(TRUTH, capacities={"a": 30.0, "b": 90.0, "c": 50.0})
    other = replace(TRUTH, capacities={"a": 45.0, "b": 90.0, "c": 50.0})
    asked = {"mixes": [], "holds": ()}
    base = synthetic.records(three, 1, **asked, rate_shares=(0.5, 0.3, 0.2))
    new = synthetic.records(other, 2, **asked, rate_shares=(0.5, 0.3, 0.2))
    assert base[-1]["weights"] != new[-1]["weights"]
    assert reasons(tmp_path / "same", base, new)["cpu1.shared", "mix-demand"] == ""
    new = synthetic.records(three, 1, **asked, rate_shares=(0.5, 0.2, 0.3))
    message = reasons(tmp_path / "another", base, new)["cpu1.shared", "mix-demand"]
    assert message.startswith(
        "another mix: a 50 % + b 30 % + c 20 % of the demanded requests in base"
    )


def test_a_new_version_of_a_model_is_comparable_if_it_has_the_same_inputs(tmp_path):
    made = synthetic.records(TRUTH, 1, mixes=[(1, 1)], holds=())
    sources = [written(tmp_path, made, name) for name in ("base", "new")]

    def checked(**change):
        checks = {model: {**told, **change} for model, told in sources[1].checks.items()}
        found = compare(sources[0], replace(sources[1], checks=checks), draws=200)
        return {each.pair.why_not for each in found.judged if each.pair.metric == PEAK}

    assert checked() == {""}
    assert checked(sha256="another", weights="tuned.pt") == {""}
    assert all("other inputs" in why for why in checked(inputs=[{"dims": [3, 64, 64]}]))


def test_other_arrivals_are_not_comparable(tmp_path):
    base = synthetic.records(TRUTH, 1, mixes=[(1, 1)], holds=())
    gamma = {"arrivals": {"process": "gamma", "cv": 2.0}}
    new = [record | {"cell": record["cell"] | gamma} for record in base]
    why = "other arrivals: poisson, cv 1 in base, gamma, cv 2 in new"
    assert set(reasons(tmp_path, base, new).values()) == {why}


def replayed(model, requests):
    """Return the records of a study that replays the rows of `model` from the trace t.csv."""
    trace = {"file": "t.csv", "where": {"Model": model}}
    arrivals = {"arrivals": {"process": "trace", "cv": 1.0}, "trace": trace}
    told = {"traces": {f"t.csv (Model {model})": f"{requests} requests"}}
    made = synthetic.records(TRUTH, 1, mixes=[(1, 1)], holds=())
    return [record | {"cell": record["cell"] | arrivals} | told for record in made]


def test_other_requests_of_a_trace_are_other_arrivals(tmp_path):
    base = replayed("a", 500)
    same, other_rows, other_file = replayed("a", 500), replayed("b", 500), replayed("a", 900)
    # A failed cell may have read no trace.
    failed = [synthetic.with_outcome(each, "failed", "why") | {"traces": {}} for each in same]
    for name, new, why in (
        ("same", same, ""),
        (
            "rows",
            other_rows,
            "other arrivals: trace, cv 1, t.csv (Model a) in base, trace, cv 1, t.csv (Model b) in"
            " new",
        ),
        ("file", other_file, "another trace: 500 requests in base, 900 requests in new"),
        ("failed", failed, "no estimate in new (failed: repeat 1: why)"),
    ):
        assert set(reasons(tmp_path / name, base, new).values()) == {why}


def test_what_only_one_has_and_what_has_no_estimate_is_said(tmp_path):
    base = synthetic.records(TRUTH, 1, mixes=[(3, 1), (1, 1)], holds=())
    new = synthetic.records(TRUTH, 2, mixes=[(1, 1), (1, 3)], holds=())
    new = [synthetic.with_outcome(record, "infeasible", "too slow")
           if record["cell"]["run"]["name"] == "mix-1-1" else record for record in new]  # fmt: skip
    found = reasons(tmp_path, base, new)
    assert found["cpu1.shared", "mix-3-1"] == "only in base"
    assert found["cpu1.shared", "mix-1-3"] == "only in new"
    assert found["cpu1.shared", "mix-1-1"] == (
        "no estimate in new (infeasible: repeat 1: too slow)"
    )
    assert found["cpu1.resnet18", "peak"] == ""


def test_another_preset_is_another_question(tmp_path):
    base = synthetic.records(TRUTH, 1, mixes=[(1, 1)], holds=())
    new = synthetic.records(replace(TRUTH, preset="standard"), 2, mixes=[(1, 1)], holds=())
    sources = written(tmp_path, base, "base"), written(tmp_path, new)
    peaks = [each.pair for each in compare(*sources, draws=200).judged if each.pair.metric == PEAK]
    assert {pair.why_not for pair in peaks} == {
        "only in base, with preset quick; the other study has preset standard",
        "only in new, with preset standard; the other study has preset quick",
    }


def test_nothing_in_common_is_a_table_all_the_same(tmp_path):
    nothing = [
        synthetic.with_outcome(record, "infeasible", "too slow")
        for record in synthetic.records(TRUTH, 1, mixes=[(1, 1)], holds=())
    ]
    sources = written(tmp_path, nothing, "base"), written(tmp_path, nothing[::-1])
    table = compare(*sources, draws=100).table.to_pandas()
    assert set(table["verdict"]) == {"not comparable"} and set(table["compared"]) == {0}


# --- sources


def test_without_records_the_intervals_of_the_tables_tell(studies, tmp_path):
    base, faster = (read_source(studies[name]) for name in ("base", "faster"))
    without = [replace(source, records=()) for source in (base, faster)]
    table = compare(*without, draws=2000).table.to_pandas()
    assert "better" in verdicts(table, "overall")
    peaks = table[table["metric"] == "peak"]
    assert peaks["ratio"].to_numpy() == pytest.approx(1.3, rel=0.1)


def test_single_repeats_without_records_are_compared_with_the_noise_of_the_host(tmp_path):
    """The intervals in the tables contain only the errors of the searches."""
    deviation = 0.07
    truth = replace(TRUTH, repeats=1, between=deviation, within=0.01, bootstraps=50)
    sources = [
        written(tmp_path, synthetic.records(truth, seed), name)
        for seed, name in enumerate(("base", "new"), start=100)
    ]
    aa = [with_aa(replace(source, records=()), deviation) for source in sources]
    found = compare(*aa, draws=4000)
    tau = np.median(found.noise.deviations["cpu1"])
    for metric, cells in (("peak", 1), ("sharing_ratio", 2)):
        ratios = [each.pair.ratio for each in found.judged if each.pair.metric == metric]
        spreads = [np.log(ratio.draws).std() for ratio in ratios if ratio.is_known]
        assert spreads and min(spreads) > np.sqrt(2 * cells) * tau
    assert not [each for each in found.judged if each.verdict in ("better", "worse")]


def test_an_interval_becomes_draws_with_its_ends():
    rng = np.random.default_rng(0)
    found = of_interval(Interval(10.0, 9.0, 12.0), rng, 20_000)
    assert np.quantile(found.draws, [0.025, 0.975]) == pytest.approx([9, 12], rel=0.01)
    opened = of_interval(Interval(10.0, 0.0, 12.0), rng, 1000)
    assert opened.open_below and not opened.open_above
    assert not of_interval(Interval(np.nan, np.nan, np.nan), rng, 10).is_known


def test_a_stale_cell_and_model_are_no_part_of_a_study(studies, tmp_path):
    folder = tmp_path / "stale"
    shutil.copytree(studies["base"], folder)
    shutil.copytree(folder / "raw/cpu1.resnet18.peak.r1", folder / "raw/cpu1.gone.peak.r1")
    shutil.copytree(folder / "models/resnet18", folder / "models/gone")
    assert read_source(folder).digest == read_source(studies["base"]).digest
    with pytest.raises(CompareError, match="base and new are the same results"):
        compare_task({"base": folder, "new": studies["base"]})


def test_a_tilde_is_the_home_folder_in_each_path(studies, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "results").symlink_to(studies["base"])
    task = compare_task({"base": "~/results", "new": studies["faster"], "out": "~/compared/"})
    assert task.out == str(tmp_path / "compared")
    text = refused(base=studies["base"], new=studies["faster"], out="~no_such_user/compared")
    assert "out: ~no_such_user/compared: there is no such user" in text


def test_an_archive_holds_the_same_as_its_folder(studies, tmp_path):
    packed, folder = tmp_path / "base.tar.gz", studies["base"]
    files = {
        path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()
    }
    archive.write(packed, "base", files)
    assert read_source(packed).digest == read_source(folder).digest
    with pytest.raises(CompareError, match="base and new are the same results"):
        compare_task({"base": folder, "new": packed})
    task = compare_task({"base": packed, "new": studies["faster"]})
    assert task.out == "results/compare/base-faster"


def test_cells_that_a_study_has_no_more_are_left_out(studies, tmp_path):
    made = synthetic.records(TRUTH, 1, mixes=[(1, 1)], holds=())
    folder = synthetic_files.write_study(tmp_path / "study", made)
    extra = synthetic.records(TRUTH, 1, mixes=[(3, 1)], holds=())[-1]
    synthetic_files.write(folder, [extra])
    assert {record.run.name for record in read_source(folder).records} == {"peak", "mix-1-1"}


def test_records_of_another_version_are_left_aside(studies, tmp_path):
    made = synthetic.records(TRUTH, 1, mixes=[(1, 1)], holds=())
    folder = synthetic_files.write_study(tmp_path / "study", made)
    path = next(folder.glob("raw/*/record.json"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"line": "another"}))
    source = read_source(folder)
    assert source.records == () and "another version" in source.without_records
    assert compare(source, read_source(studies["same"]), draws=200).judged
    path.unlink()
    with pytest.raises(CompareError, match="the results are incomplete: run the study to its end"):
        read_source(folder)
    for path in folder.glob("raw/*/record.json"):
        path.unlink()
    assert read_source(folder).without_records == "its records are missing"


@pytest.mark.parametrize(
    "measured_again",
    [
        lambda record: record | {"requests": 1},
        lambda record: synthetic.with_outcome(record, "uncertified", "why"),
        lambda record: synthetic.with_outcome(record, "infeasible", "why"),
    ],
    ids=["requests", "verdict", "limit"],
)
def test_tables_of_an_earlier_run_are_refused(odd, measured_again):
    """A run that stops before the job `tables` leaves the tables of the run before."""
    for path in odd.glob("raw/cpu1.resnet18.peak.*/record.json"):
        path.write_text(json.dumps(measured_again(json.loads(path.read_text()))))
    with pytest.raises(CompareError, match="the tables are older than the records of the cells"):
        read_source(odd)


def refused(**asked):
    with pytest.raises(CompareError) as caught:
        compare_task(asked)
    return "\n".join(caught.value.problems)


def test_all_that_is_wrong_is_said_at_once(studies, tmp_path):
    (tmp_path / "notes.txt").write_text("no archive")
    text = refused(base=tmp_path / "nowhere", new=tmp_path / "notes.txt", out="a/{b}")
    assert "base: " in text and "there is no such folder or archive" in text
    assert "cannot be read as .tar.gz" in text
    assert "out: 'a/{b}' cannot be the folder for the comparison, because it is" in text
    assert refused().count("is missing") == 2
    assert "base and new are the same results" in refused(base=studies["base"], new=studies["base"])
    for name in ("peaks", "tenants", "costs", "aa"):
        assert f"new: {tmp_path}: it has no tables/{name}.parquet" in refused(
            base=studies["base"], new=tmp_path
        )


def test_tables_of_another_version_cut_or_empty_are_named(tmp_path):
    made = synthetic.records(TRUTH, 1, mixes=[(1, 1)], holds=())
    folder = synthetic_files.write_study(tmp_path / "study", made)
    peaks = folder / "tables/peaks.parquet"
    pd.read_parquet(peaks).drop(columns=["preset", "mix"]).to_parquet(peaks)
    (folder / "tables/costs.parquet").write_bytes(b"cut")
    with pytest.raises(CompareError) as caught:
        read_source(folder)
    first, second = caught.value.problems
    assert "comes from another version of Perseus and lacks the columns preset, mix" in first
    assert second.startswith("tables/costs.parquet cannot be read")


def test_a_study_without_a_search_is_refused(odd):
    path = odd / "tables/peaks.parquet"
    pd.read_parquet(path).head(0).to_parquet(path)
    with pytest.raises(CompareError) as caught:
        read_source(odd)
    assert caught.value.problems == (
        "this study has no search for a peak, and a comparison needs peaks",
    )


@pytest.fixture
def odd(tmp_path):
    """Return a small study that a test may change."""
    made = synthetic.records(TRUTH, 1, mixes=[(1, 1)], holds=())
    return synthetic_files.write_study(tmp_path / "odd", made)


@pytest.mark.parametrize(
    ("table", "column", "value", "message"),
    [
        ("peaks", "estimate_rps", "x", "Failed to parse string: 'x'"),
        ("peaks", "estimate_rps", -5.0, "estimate_rps is -5, and must be at least 0"),
        ("peaks", "repeats_used", None, "repeats_used is null"),
        ("peaks", "scenario", None, "scenario is null"),
        ("tenants", "p95_ms", -1.0, "p95_ms is -1, and must be at least 0"),
        ("tenants", "rate_rps", np.inf, "rate_rps is infinite"),
        ("tenants", "sla_ms", "q", "Failed to parse string: 'q'"),
        ("costs", "usd_per_hour", np.inf, "usd_per_hour is infinite"),
        ("costs", "pricing", None, "pricing is null"),
    ],
)
def test_values_that_no_table_has_are_refused(odd, table, column, value, message):
    path = odd / f"tables/{table}.parquet"
    pd.read_parquet(path).assign(**{column: value}).to_parquet(path)
    with pytest.raises(CompareError) as caught:
        read_source(odd)
    (problem,) = caught.value.problems
    assert problem.startswith(f"tables/{table}.parquet cannot be read (") and message in problem


def test_records_and_checks_that_nest_without_end_are_left_aside(odd):
    for name in ("raw/cpu1.resnet18.peak.r1/record.json", "models/resnet18/check.json"):
        (odd / name).write_text("[" * 200_000)
    source = read_source(odd)
    assert source.records == () and set(source.checks) == {"mobilenet_v3_large"}


def test_names_of_files_need_be_no_unicode(odd):
    folder = odd / "raw" / os.fsdecode(b"\xff")
    folder.mkdir()
    (folder / "record.json").write_text("{}")
    assert read_source(odd).records


@pytest.mark.parametrize("headers", [{"GNU.sparse.map": "a,b"}, {"GNU.sparse.size": "x"}])
def test_extended_headers_that_are_no_numbers_make_no_archive(tmp_path, headers):
    path = tmp_path / "x.tar.gz"
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as packed:
        member = tarfile.TarInfo("x")
        member.pax_headers = headers
        packed.addfile(member, io.BytesIO())
    with pytest.raises(CompareError, match=r"cannot be read as \.tar\.gz"):
        read_source(path)


def test_texts_of_a_study_control_no_terminal(odd):
    path = odd / "tables/peaks.parquet"
    names = {"study": "x\n\x1b[2J", "server": "\x1bcpu1"}
    pd.read_parquet(path).assign(**names).to_parquet(path)
    source = read_source(odd)
    assert source.study == r"x\n\x1b[2J" and set(source.tables["peaks"]["server"]) == {r"\x1bcpu1"}


def test_an_archive_with_two_studies_or_with_a_link_is_refused(studies, tmp_path):
    path = tmp_path / "x.tar.gz"
    with tarfile.open(path, "w:gz") as packed:
        packed.add(studies["base"], "base")
        packed.add(studies["same"], "same")
    assert "more than one study: base/, same/" in refused(base=path, new=studies["base"])
    (tmp_path / "link").symlink_to("/etc")
    with tarfile.open(path, "w:gz") as packed:
        packed.add(tmp_path / "link", "base/link")
    assert "not a regular file" in refused(base=path, new=studies["base"])


# --- the gate


def test_the_gate_names_what_got_worse_and_lets_the_rest_pass(compared):
    with pytest.raises(WorseError, match=r"cpu1 peak resnet18: 0\.\d+ times the base") as caught:
        gate(compared("base", "slower"), Path("summary.md"))
    # a lower peak also raises the cost, but the gate names only the peak
    assert "cost" not in str(caught.value)
    with pytest.raises(WorseError, match="cost"):
        gate(compared("base", "dear"), Path("summary.md"))
    for name in ("same", "faster"):
        gate(compared("base", name), Path("summary.md"))


def test_a_lower_peak_does_not_hide_the_higher_price_of_another_load_line(compared):
    slower, dear = compared("base", "slower"), compared("base", "dear")
    is_of_resnet = dear["mix"] == "resnet18"
    table = pd.concat([slower[slower["mix"] == "resnet18"], dear[~is_of_resnet]])
    with pytest.raises(WorseError) as caught:
        gate(table, Path("summary.md"))
    message = str(caught.value)
    assert "peak resnet18: " in message and "cost resnet18 on_demand" not in message
    assert "cost mobilenet_v3_large on_demand: " in message


@pytest.mark.parametrize(
    ("outcomes", "lost"),
    [
        (["infeasible"] * 3, "infeasible: repeat 1: why"),
        (["failed"] * 3, "failed: repeat 1: why"),
        (["disturbed"] * 3, ""),
        (["disturbed", "client_limited", "disturbed"], ""),
        (["infeasible", "infeasible", "disturbed"], "infeasible: repeat 1: why"),
        (["client_limited", "infeasible", "disturbed"], "infeasible: repeat 2: why"),
        (["infeasible", "failed", "disturbed"], "failed: repeat 2: why"),
    ],
)
def test_the_gate_fails_where_a_server_has_lost_its_limit(studies, tmp_path, outcomes, lost):
    made = synthetic.records(TRUTH, 2)
    new = [
        synthetic.with_outcome(each, outcomes[each["cell"]["repeat"] - 1], "why")
        if each["cell"]["scenario"] == "cpu1.resnet18"
        else each
        for each in made
    ]
    found = compare(read_source(studies["base"]), written(tmp_path, new), draws=200)
    table = found.table.to_pandas()
    if lost:
        with pytest.raises(WorseError, match=f"resnet18: now {lost}"):
            gate(table, Path("summary.md"))
    else:
        gate(table, Path("summary.md"))


def test_the_gate_names_what_is_lost_even_if_nothing_else_is_comparable(tmp_path):
    made = [synthetic.records(TRUTH, seed, mixes=(), holds=()) for seed in (1, 2)]
    lost = [synthetic.with_outcome(each, "infeasible", "too slow") for each in made[1]]
    found = compare(written(tmp_path, made[0], "base"), written(tmp_path, lost), draws=200)
    with pytest.raises(WorseError, match="resnet18: now infeasible: repeat 1: too slow"):
        gate(found.table.to_pandas(), Path("summary.md"))


@pytest.mark.parametrize("line", ["peak", "mix-1-1"])
def test_a_server_that_no_longer_starts_has_lost_its_limit_whatever_its_input(tmp_path, line):
    """If a server does not start, the record contains no request size.

    A missing request size does not count as a different input.
    """
    base = synthetic.records(TRUTH, 1, mixes=[(1, 1)], holds=())
    new = [
        synthetic.with_outcome(each, "failed", "it ended with 1")
        if each["cell"]["run"]["name"] == line
        else each
        for each in synthetic.records(TRUTH, 2, mixes=[(1, 1)], holds=())
    ]
    found = compare(written(tmp_path, base, "base"), written(tmp_path, new), draws=200)
    lost = [each.pair for each in found.judged if each.pair.line.row["load_line"] == line]
    assert {pair.why_not for pair in lost} == {
        "no estimate in new (failed: repeat 1: it ended with 1)"
    }
    with pytest.raises(WorseError, match="now failed: repeat 1: it ended with 1"):
        gate(found.table.to_pandas(), Path("summary.md"))
    otherwise = [with_tenant(each, preprocessing="server") for each in new]
    asked = compare(read_source(tmp_path / "base"), written(tmp_path, otherwise), draws=200)
    assert not any(each.pair.lost for each in asked.judged)


def test_the_gate_names_the_scenario_where_several_have_the_same_load_line(tmp_path):
    made = [
        [*synthetic.records(truth, seed, [(1, 1)], ()),
         *map(of_second_scenario, synthetic.records(truth, seed, [(1, 1)], ())[-3:])]
        for seed, truth in enumerate((TRUTH, SLOWER))
    ]  # fmt: skip
    sources = [written(tmp_path, each, name) for name, each in zip("ab", made, strict=True)]
    with pytest.raises(WorseError) as caught:
        gate(compare(*sources, draws=500).table.to_pandas(), Path("summary.md"))
    mix = "resnet18 1 : 1 mobilenet_v3_large"
    assert f"peak {mix} (shared): " in str(caught.value)
    assert f"peak {mix} (second): " in str(caught.value)
    assert "peak resnet18: " in str(caught.value)


def of_second_scenario(record):
    cell = record["cell"]
    moved = {key: cell[key].replace("shared", "second") for key in ("cell", "scenario")}
    return record | {"cell": cell | moved}


def test_the_gate_fails_where_nothing_can_be_compared(studies, tmp_path):
    made = [with_tenant(each, sla={"latency_ms": 1.0}) for each in synthetic.records(TRUTH, 2)]
    found = compare(read_source(studies["base"]), written(tmp_path, made), draws=200)
    with pytest.raises(WorseError, match="no value could be compared with the base"):
        gate(found.table.to_pandas(), Path("summary.md"))


def test_the_table_is_written_with_units_and_read_back(compared, studies, tmp_path):
    found = compare(read_source(studies["base"]), read_source(studies["same"]), draws=200)
    parquet.write(found.table, tmp_path / "c.parquet", tmp_path / "c.csv")
    assert len(pd.read_csv(tmp_path / "c.csv")) == len(found.judged)
    assert set(found.table.to_pandas()["metric"]) == {*COMPARED, "overall"}


# --- checks of a comparison


def checked(table):
    check_comparison(parquet.table(table.to_dict("records"), SCHEMA.arrow))


@pytest.mark.parametrize("new", ["same", "faster", "slower", "dear", "single"])
def test_a_comparison_is_what_its_definition_says(compared, new):
    checked(compared("base", new))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ratio": 0.9}, "broken rule: ratio = new / base"),
        ({"ci_high": 0.1}, "broken rule: ci_low <= ratio <= ci_high"),
        ({"verdict": "better"}, "broken rule: if the verdict is `better` or `worse`"),
        ({"verdict": "not comparable"}, "broken rule: a row with the verdict `not comparable`"),
        ({"verdict": "so-so"}, "verdict is so-so, and must be worse, better"),
        ({"base": -1.0}, "base is -1, and must be at least 0"),
    ],
)
def test_a_comparison_that_contradicts_itself_is_told(compared, changed, message):
    table = compared("base", "same")
    table.loc[0, list(changed)] = list(changed.values())
    with pytest.raises(ContradictionError) as told:
        checked(table)
    assert message in str(told.value) and "--forcerun compare" in str(told.value)


def test_the_wrong_way_round_is_told(compared):
    table = compared("base", "faster")
    table["verdict"] = table["verdict"].replace("better", "worse")
    rule = "the verdict `better` has a ratio above 1 if a higher value is better"
    with pytest.raises(ContradictionError, match=rule):
        checked(table)
