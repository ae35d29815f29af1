"""Tests of tables made from raw files: the values are correct, and missing values are reported."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import synthetic
import synthetic_files

from perseus.host import parquet
from perseus.host.files import write_json
from perseus.measurement import raw_results
from perseus.peak.outcome import Outcome
from perseus.results import tables, windows
from perseus.results.client_ceiling import Ceiling
from perseus.results.dictionary import dictionary, keys
from perseus.results.records import PeakRecord, Record
from perseus.results.repeats import WORST_FIRST, combine, group
from perseus.results.study_results import StudyResults
from perseus.results.tables.concurrency import ConcurrencyRecord
from perseus.results.tables.replay import ReplayRecord
from perseus.results.tables.slowdown import SlowdownRecord
from perseus.results.tables.soak import SoakRecord, failing
from perseus.study.experiments import OTHER_KINDS

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return a study with two dedicated load lines, three mixes, two load lines with background
    load, and every verdict."""
    folder = tmp_path_factory.mktemp("synthetic")
    made = synthetic.with_failures(synthetic.records())
    cells = synthetic_files.write(folder, made)
    write_json(folder / "ceilings/cpu1.json", synthetic.ceiling())
    others = [write(folder) for write in synthetic_files.OF_KIND.values()]
    read = StudyResults.read(synthetic.TASK, [*cells, *others], [folder / "ceilings/cpu1.json"])
    for name, table in synthetic_files.all_tables(read).items():
        parquet.write(table, folder / f"tables/{name}.parquet", folder / f"tables/{name}.csv")
    return folder


@pytest.fixture(scope="module")
def peaks(results):
    return pd.read_parquet(results / "tables/peaks.parquet").set_index("load_line", drop=False)


@pytest.fixture(scope="module")
def two_presets():
    made = synthetic.with_two_presets(repeats=1)
    return {name: table.to_pandas() for name, table in synthetic_files.tables_of(made).items()}


def test_a_line_is_compared_with_dedicated_peaks_of_its_own_preset(two_presets):
    """With the preset quick, the server was half as fast. If Perseus used the dedicated peaks of
    the preset quick, the sharing ratio of the preset standard would be twice as high."""
    savings = two_presets["savings"]
    assert set(zip(savings["scenario"], savings["preset"], strict=True)) == {
        ("cpu1.shared", "quick"),
        ("cpu1.sure", "standard"),
    }
    assert savings["sharing_ratio"].between(1.1, 1.4).all()
    tenants = two_presets["tenants"]
    of_resnet = tenants[tenants["tenant"] == "resnet18"].groupby("preset")["dedicated_rps"]
    assert of_resnet.nunique().eq(1).all()
    assert of_resnet.mean()["standard"] / of_resnet.mean()["quick"] == pytest.approx(2, rel=0.2)


def test_dedicated_peaks_of_two_presets_are_told_apart(two_presets):
    alone = two_presets["peaks"][two_presets["peaks"]["kind"] == "dedicated"]
    assert list(zip(alone["load_line"], alone["mix"], strict=True)) == [
        ("peak", "resnet18"),
        ("peak", "mobilenet_v3_large"),
        ("peak-standard", "resnet18 (standard)"),
        ("peak-standard", "mobilenet_v3_large (standard)"),
    ]
    assert set(alone["repeats"]) == {1}


def served(record, **more):
    """Return a cell whose server already had the model of its first tenant."""
    tenant = record["cell"]["tenants"][0]["name"]
    model = {"name": "mine", "version": "3", "backend": "onnxruntime", "max_batch_size": 8}
    model |= {"config_sha256": "ab" * 32}
    return record | {"served_models": {tenant: model | more}}


def test_what_executes_a_served_model_is_its_backend():
    made = synthetic.records(mixes=[(1, 1)], holds=())
    peaks = synthetic_files.tables_of([served(r, backend="ensemble") for r in made])["peaks"]
    assert peaks["runtime"].to_pylist() == ["ensemble", "ensemble", "ensemble + onnxruntime"]


def test_each_load_line_has_one_row_with_all_its_repeats(peaks):
    assert len(peaks) == 7
    assert (peaks["repeats"] == 2).all()
    assert peaks.loc["mix-1-1", "mix"] == "resnet18 1 : 1 mobilenet_v3_large"
    assert peaks.loc["hold-resnet18-50", "mix"].endswith("beside resnet18 held at 50 %")


def test_the_truth_is_found(peaks):
    alone = peaks[peaks["kind"] == "dedicated"].set_index("mix")["estimate_rps"]
    assert alone["resnet18"] == pytest.approx(30, rel=0.05)
    assert alone["mobilenet_v3_large"] == pytest.approx(90, rel=0.05)
    for line in ("mix-1-1", "hold-resnet18-50"):
        assert peaks.loc[line, "sharing_ratio"] == pytest.approx(1.25, rel=0.06)


def test_the_slowdown_is_that_of_the_truth_within_its_interval(results):
    tenants = pd.read_parquet(results / "tables/tenants.parquet")
    shared = tenants[(tenants["kind"] != "dedicated") & tenants["rate_rps"].notna()]
    assert len(shared) == 8 and shared["slowdown"].notna().all()
    truth = synthetic.SLOWDOWN
    inside = shared["slowdown_low"].le(truth) & shared["slowdown_high"].ge(truth)
    assert inside.mean() >= 0.9
    assert shared["slowdown"].median() == pytest.approx(truth, rel=0.05)
    assert tenants[tenants["kind"] == "dedicated"]["slowdown"].isna().all()


def test_an_invalid_window_of_a_tenant_alone_gives_no_slowdown(tmp_path):
    made = synthetic.records(synthetic.Truth({"a": 30.0, "b": 90.0}, repeats=1), mixes=[(1, 1)])
    cells = synthetic_files.write(tmp_path, made)
    for cell in cells:
        found = pq.read_table(cell / "windows.parquet").to_pylist()
        for row in found:
            if row["phase"] == "alone" and row["tenant"] == "a":
                row["window_verdict"] = "invalid"
        raw_results.write_windows(cell / "windows.parquet", found)
    tenants = synthetic_files.all_tables(StudyResults.read(synthetic.TASK, cells, []))["tenants"]
    shared = tenants.to_pandas().query("kind != 'dedicated' and rate_rps.notna()")
    assert shared[shared["tenant"] == "a"]["slowdown"].isna().all()
    assert shared[shared["tenant"] == "b"]["slowdown"].notna().all()


def test_operating_points_have_the_certified_rates_of_their_models(results):
    of = {
        name: pd.read_parquet(results / f"tables/{name}.parquet")
        for name in ("operating_points", "tenants")
    }
    points = of["operating_points"].set_index(["scenario", "load_line", "model"])["certified_rps"]
    rates = of["tenants"].groupby(["scenario", "load_line", "model"])["rate_rps"].min()
    assert points.notna().sum() >= 4
    assert points.dropna().to_numpy() == pytest.approx(rates.loc[points.dropna().index].to_numpy())


def test_the_load_of_the_client_is_the_share_of_its_ceiling(results, peaks):
    (row,) = pd.read_parquet(results / "tables/ceilings.parquet").to_dict("records")
    assert (row["ceiling_rps"], row["first_invalid_rps"]) == (900, 1377)
    assert (row["closed_loop_rps"], row["closed_loop_concurrency"]) == (1800, 4)
    known = peaks[peaks["estimate_rps"].notna()]
    np.testing.assert_allclose(known["client_load"], known["estimate_rps"] / 900)


def ceilings_of(folder, **changes):
    """Return the tables of peaks and ceilings of a small study with a changed ceiling."""
    truth = synthetic.Truth(synthetic.TRUTH.capacities, repeats=1)
    cells = synthetic_files.write(folder, synthetic.records(truth, mixes=[(1, 1)], holds=()))
    found = synthetic.ceiling()
    found["shapes"][0] |= changes
    write_json(folder / "ceilings/cpu1.json", found)
    read = StudyResults.read(synthetic.TASK, cells, [folder / "ceilings/cpu1.json"])
    made = {name: table.to_pylist() for name, table in synthetic_files.all_tables(read).items()}
    return made["peaks"], made["ceilings"]


def test_a_ceiling_that_a_peak_exceeds_is_refused(tmp_path):
    """For example, another process used the host during the measurement of the ceiling."""
    # a ceiling of 50 requests/s is between the two dedicated peaks
    tried = synthetic.ceiling()["shapes"][0]["open"][-1] | {"rate_rps": 50.0}
    peaks, (ceiling,) = ceilings_of(tmp_path, open=[tried])
    assert ceiling["problem"].startswith("the client sent more in valid windows of ")
    assert ceiling["problem"].endswith("%), so this ceiling is too low")
    assert len(peaks) == 3 and all(peak["client_load"] is None for peak in peaks)


@pytest.mark.parametrize("capacities", [(800.0, 850.0), (800.0, 950.0)])
def test_what_no_window_offered_speaks_against_no_ceiling(capacities):
    """A predicted mix and an estimate exceed the ceiling, but certified rates do not."""
    truth = synthetic.Truth(dict(zip((SLOW, QUICK), capacities, strict=True)), repeats=1, gain=1.3)
    made = [
        synthetic.predicted(record) if record["cell"]["run"]["line"] == "mix" else record
        for record in synthetic.records(truth, mixes=[(1, 1)], holds=())
    ]
    found = synthetic_files.tables_of(made)
    peaks, (ceiling,) = found["peaks"].to_pylist(), found["ceilings"].to_pylist()
    assert ceiling["problem"] == "" and max(peak["client_load"] for peak in peaks) > 1


def test_a_repeat_that_certified_more_than_a_ceiling_refuses_it(tmp_path):
    """The certified rate of a single repeat is enough: another repeat certified no rate."""
    truth = synthetic.Truth({SLOW: 1100.0, QUICK: 90.0})
    made = synthetic.records(truth, mixes=(), holds=())
    first = next(record for record in made if record["cell"]["repeat"] == 1)
    first["certified_scale"] = None
    (ceiling,) = synthetic_files.tables_of(made)["ceilings"].to_pylist()
    assert f"in valid windows of {SLOW}" in ceiling["problem"]


def test_a_mix_refuses_the_ceilings_of_its_tenants_with_load_only(tmp_path):
    truth = synthetic.Truth({SLOW: 1100.0, QUICK: 90.0}, repeats=1)
    made = synthetic.records(truth, mixes=[(1, 0)], holds=())
    cells = synthetic_files.write(tmp_path, made)
    shapes = [synthetic.ceiling([name])["shapes"][0] for name in (SLOW, QUICK)]
    write_json(tmp_path / "ceilings/cpu1.json", synthetic.ceiling() | {"shapes": shapes})
    read = StudyResults.read(synthetic.TASK, cells, [tmp_path / "ceilings/cpu1.json"])
    ceilings = synthetic_files.all_tables(read)["ceilings"].to_pylist()
    assert {row["models"]: bool(row["problem"]) for row in ceilings} == {SLOW: True, QUICK: False}


def test_a_ceiling_that_others_disturbed_is_refused(tmp_path):
    why = "other processes used 45% of the cores in a closed loop"
    peaks, (ceiling,) = ceilings_of(tmp_path, disturbed=why)
    assert ceiling["problem"] == why and ceiling["ceiling_rps"] == 900
    assert all(peak["client_load"] is None for peak in peaks)


def test_a_tenant_without_load_takes_nothing_of_the_client(tmp_path):
    truth = synthetic.Truth(synthetic.TRUTH.capacities, repeats=1)
    cells = synthetic_files.write(tmp_path, synthetic.records(truth, mixes=[(1, 0)], holds=()))
    write_json(tmp_path / "ceilings/cpu1.json", synthetic.ceiling(["resnet18"]))
    read = StudyResults.read(synthetic.TASK, cells, [tmp_path / "ceilings/cpu1.json"])
    peaks = synthetic_files.all_tables(read)["peaks"].to_pylist()
    assert [peak["client_load"] is not None for peak in peaks] == [True, False, True]


def test_what_a_request_costs_stands_side_by_side(tmp_path):
    truth = synthetic.Truth(synthetic.TRUTH.capacities, repeats=1)
    plain, other = synthetic.records(truth, mixes=(), holds=())
    made = synthetic_files.tables_of([synthetic.by_server(plain), other])
    pictures, tensors = made["tenants"].to_pylist()
    assert (pictures["preprocessing"], tensors["preprocessing"]) == ("server", "")
    assert (pictures["request_bytes"], tensors["request_bytes"]) == (50000, 602112)
    assert (pictures["client_preprocess_ms"], tensors["client_preprocess_ms"]) == (4.5, None)
    assert {(row["client_cpu_ms"], row["server_cpu_ms"]) for row in (pictures, tensors)} == {
        (0.4, 12.5)
    }


def test_the_ceiling_of_tensors_says_nothing_of_pictures(tmp_path):
    """A client ceiling that was measured with tensors stays valid if a tenant with pictures exceeds
    the ceiling."""
    truth = synthetic.Truth({"resnet18": 2000.0, "mobilenet_v3_large": 90.0}, repeats=1)
    fast, slow = synthetic.records(truth, mixes=(), holds=())
    made = synthetic_files.tables_of([synthetic.by_server(fast), slow])
    pictures, tensors = made["peaks"].to_pylist()
    assert pictures["estimate_rps"] > 900 and pictures["client_load"] is None
    assert tensors["client_load"] == pytest.approx(tensors["estimate_rps"] / 900)
    assert [row["problem"] for row in made["ceilings"].to_pylist()] == [""]


def test_a_good_ceiling_has_no_problem(tmp_path):
    peaks, (ceiling,) = ceilings_of(tmp_path)
    assert ceiling["problem"] == "" and all(0 < peak["client_load"] < 1 for peak in peaks)


def test_a_closed_loop_has_a_row_per_level_and_tenant_and_is_no_peak(results, peaks):
    found = pd.read_parquet(results / "tables/concurrency.parquet")
    assert list(found["concurrency"]) == [1, 1, 4, 4, 16, 16]
    assert found["answered_rps"].max() == 100
    assert list(found["valid"]) == [True] * 4 + [False] * 2
    assert list(found["reason"]) == [""] * 4 + ["the client used 90% of its core"] * 2
    assert "concurrency" not in set(peaks["load_line"])


def test_a_start_has_a_row_per_tenant_and_its_number_in_its_state_of_the_page_cache(results):
    found = pd.read_parquet(results / "tables/startup.parquet")
    assert len(found) == 2 * 2 * synthetic.STARTS
    cold = found[(found["page_cache"] == "cold") & (found["tenant"] == found["tenant"].iloc[0])]
    assert list(cold["start"]) == list(range(1, synthetic.STARTS + 1))
    assert cold["ready_s"].iloc[0] == pytest.approx(2.2)
    assert set(cold["resident_share"]) == {0.0}


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_the_rows_of_an_experiment_say_which_cell_they_are_of(kind, tmp_path):
    folder = synthetic_files.write_kind(kind, tmp_path)
    task = json.loads((folder / "record.json").read_text())["cell"]
    read = StudyResults.read(synthetic.TASK, [folder], [])
    rows = list(tables.module_of(kind).rows(read))
    of = ("study", "server", "scenario", "cell", "repeat")
    assert {tuple(row[name] for name in of) for row in rows} == {
        (task["study"], task["server"]["name"], task["scenario"], task["cell"], task["repeat"])
    }


def test_the_noise_of_a_host_has_a_row_per_server_and_stands_beside_its_savings(results):
    found = pd.read_parquet(results / "tables/aa.parquet")
    assert list(found["restart"]) == [1, 2, 3, 4] and set(found["windows"]) == {3}
    assert list(found["answered_rps"]) == [100.0, 106.0, 94.0, 100.0]
    for name in ("capacity_rps", "between_windows", "between_restarts", "noise_floor"):
        assert found[name].nunique() == 1
    savings = pd.read_parquet(results / "tables/savings.parquet")
    assert set(savings["noise_floor"]) == set(found["noise_floor"])


def test_servers_of_which_one_failed_have_rows_but_no_noise_floor(tmp_path):
    folder, record = synthetic_files.write_aa(tmp_path), synthetic.aa_record()
    failed = {"outcome": "failed", "reason": "server 3: it died"}
    rates = record["capacities_rps"][:2]
    write_json(folder / "record.json", record | failed | {"capacities_rps": rates})
    read = StudyResults.read(synthetic.TASK, [folder], [])
    rows = list(tables.module_of("aa").rows(read))
    assert [row["answered_rps"] for row in rows] == [100.0, 106.0]
    assert {row["noise_floor"] for row in rows} == {None}
    assert tables.module_of("aa").noise_floors(read) == {}


def test_of_several_cells_the_highest_noise_floor_is_that_of_the_server(tmp_path):
    folders = [tmp_path / name for name in ("quiet", "noisy")]
    for folder, spread in zip(folders, (1.0, 2.0), strict=True):
        rates = [[mean - 1, mean + 1] for mean in (100 - spread, 100, 100 + spread)]
        write_json(folder / "record.json", synthetic.aa_record() | {"capacities_rps": rates})
    read = StudyResults.read(synthetic.TASK, folders, [])
    (floor,) = tables.module_of("aa").noise_floors(read).values()
    # 4.302653 is the 97.5 % quantile of Student's distribution for three starts of the server.
    assert floor == pytest.approx(4.302653 * 2**0.5 * 0.02)


def test_a_replay_has_a_row_per_phase_and_tenant_with_its_worst_minute(results):
    found = pd.read_parquet(results / "tables/replay.parquet")
    assert list(found["phase"]) == ["shared", "shared", "alone", "alone"]
    assert list(found["tenant"]) == [*synthetic.TRUTH.capacities] * 2
    shared, alone = found.iloc[0], found.iloc[2]
    assert (shared["verdict"], alone["verdict"]) == ("sla_missed", "ok")
    assert shared["worst_minute_attained"] == pytest.approx(650 / 760)
    assert (shared["worst_recovery_s"], alone["worst_recovery_s"]) == (1.5, 0.2)
    assert set(found["busiest_rps"]) == {50.0} and set(found["bursts"]) == {2}
    each_s = np.array([10] * 142 + [50] * 8)
    assert shared["dispersion"] == pytest.approx(each_s.var() / each_s.mean())
    assert (shared["requests"], shared["process"], shared["punctual"]) == (1820, "mmpp", 0.995)


def test_attainment_over_time_has_the_counts_of_seconds_and_of_minutes(results):
    found = pd.read_parquet(results / "tables/attainment.parquet")
    sizes = found.groupby(["phase", "tenant", "bin_s"]).size()
    assert len(sizes) == 8 and set(sizes) == {150, 3}
    first = found[(found["tenant"] == found["tenant"].iloc[0]) & (found["phase"] == "shared")]
    minutes = first[first["bin_s"] == 60]
    assert list(minutes["start_s"]) == [0, 60, 120] and list(minutes["requests"]) == [760, 760, 300]
    assert list(minutes["within"]) == [650, 650, 300]
    seconds = first[first["bin_s"] == 1].set_index("start_s")
    assert seconds["attained"].loc[[19, 20, 23, 24, 25]].tolist() == [1.0, 0.5, 0.5, 0.0, 1.0]


def test_a_recovery_that_was_not_over_is_infinite_and_none_is_null(tmp_path):
    record = synthetic.replay_record()
    record["offered"][0]["bursts"][1]["recovery_s"] = None
    record["offered"][1]["bursts"] = []
    read = StudyResults.read(synthetic.TASK, [synthetic_files.write_replay(tmp_path, record)], [])
    rows = list(tables.module_of("replay").rows(read))
    assert rows[0]["worst_recovery_s"] == np.inf and np.isnan(rows[1]["worst_recovery_s"])
    assert [row["bursts"] for row in rows] == [2, 0, 2, 2]


def test_phases_that_were_not_measured_have_the_verdict_of_their_cell(tmp_path):
    record = synthetic.replay_record() | {"outcome": "failed", "reason": "the server died"}
    record["offered"] = record["offered"][:2]
    read = StudyResults.read(synthetic.TASK, [synthetic_files.write_replay(tmp_path, record)], [])
    module = tables.module_of("replay")
    frame = parquet.table(list(module.rows(read)), module.SCHEMA.arrow).to_pandas()
    assert list(frame["verdict"]) == ["sla_missed", "sla_missed", "failed", "failed"]
    assert list(frame["reason"])[2:] == ["the server died"] * 2
    assert frame["attained"].notna().tolist() == [True, True, False, False]


def test_what_leaks_in_a_soak_grows_and_what_scatters_is_steady(results):
    found = pd.read_parquet(results / "tables/soak.parquet")
    of_tenant = ["p50", "p95", "failed requests"]
    assert list(found["quantity"]) == of_tenant * 2 + ["memory", "open files"]
    assert list(found["tenant"].isna()) == [False] * 6 + [True] * 2
    memory, files = found.iloc[6], found.iloc[7]
    assert memory["drift"] == files["drift"] == "grows"
    assert memory["low_per_hour"] < synthetic.LEAK_MB_PER_HOUR < memory["high_per_hour"]
    assert memory["high_per_hour"] - memory["low_per_hour"] < 0.1 * synthetic.LEAK_MB_PER_HOUR
    assert files["per_hour"] == pytest.approx(synthetic.LEAK_FILES_PER_HOUR, rel=0.1)
    assert memory["level"] == pytest.approx(500, rel=0.01) and memory["windows"] == 60
    latency = found[found["unit"] == "ms"]
    assert set(latency["drift"]) == {"steady"}
    # the first window is invalid: its latencies are a thousand times as high
    assert set(latency["windows"]) == {59} and set(latency["rate_rps"]) == {12.0, 36.0}
    assert (latency["level"] < 1000).all()


def test_a_soak_that_answers_all_has_no_failed_requests(results):
    found = pd.read_parquet(results / "tables/soak.parquet").set_index("quantity")
    failed_rows = found.loc["failed requests"]
    assert set(failed_rows["drift"]) == {"steady"} and set(failed_rows["unit"]) == {"%"}
    assert (failed_rows[["level", "per_hour", "failed_requests"]] == 0).all(axis=None)
    assert failed_rows["failing_from_hours"].isna().all() and (failed_rows["requests"] > 0).all()
    others = found.drop("failed requests")
    assert others[["requests", "failed_requests", "failing_from_hours"]].isna().all(axis=None)


def test_a_soak_says_how_many_requests_missed_the_sla_in_windows_that_count(tmp_path):
    folder = synthetic_files.write_soak(tmp_path)
    rows = pq.read_table(folder / "windows.parquet").to_pylist()
    for row in rows:
        row["exceedance"] = 1.0 if row["verdict"] == "invalid" else 0.2 * (row["window"] >= 30)
        row["requests"] = 100 if row["window"] < 30 else 300
    raw_results.write_windows(folder / "windows.parquet", rows)
    made = table_of("soak", folder).set_index("quantity")
    of_sla = made.loc["p95"]
    assert list(of_sla["exceedance"]) == pytest.approx([0.2 * 9000 / (9000 + 2900)] * 2)
    assert list(of_sla["allowed"]) == pytest.approx([0.05] * 2)
    assert made.drop("p95")[["exceedance", "allowed"]].isna().all(axis=None)


def test_a_window_without_requests_does_not_hide_the_late_requests_of_a_soak(tmp_path):
    """At low rates, a short window may have no requests, and thus no exceedance."""
    folder = synthetic_files.write_soak(tmp_path)
    rows = pq.read_table(folder / "windows.parquet").to_pylist()
    for row in rows:
        row |= {"exceedance": 0.2, "requests": 100}
        if row["window"] == 30:
            row |= {"exceedance": np.nan, "requests": 0, "verdict": "undecided"}
    raw_results.write_windows(folder / "windows.parquet", rows)
    of_sla = table_of("soak", folder).set_index("quantity").loc["p95"]
    assert list(of_sla["exceedance"]) == pytest.approx([0.2] * 2)


def failed_requests_of(folder):
    """Return the rows of the table by quantity, and the rows of failed requests."""
    made = table_of("soak", folder).set_index("quantity")
    return made, made.loc["failed requests"]


def test_requests_that_fail_in_the_last_third_of_a_soak_are_told(tmp_path):
    folder = synthetic_files.write_soak(tmp_path)
    synthetic_files.fail_requests(folder, 0.3, first=40)
    made, failed_rows = failed_requests_of(folder)
    assert set(made.loc["p95", "drift"]) == {"infinite at times"}
    assert set(made.loc["p50", "drift"]) == {"steady"}
    assert set(made.loc["p95", "windows"]) == {59} and np.isfinite(made.loc["p95", "level"]).all()
    assert not set(failed_rows["drift"]) & {"steady", "falls"}
    assert list(failed_rows["failed_requests"] / failed_rows["requests"]) == pytest.approx(
        [0.3 * 20 / 59] * 2, rel=0.01
    )
    # from the start of the first window to the middle of the 41st
    assert list(failed_rows["failing_from_hours"]) == pytest.approx([40.5 / 60] * 2)


def test_a_growing_share_of_failed_requests_grows(tmp_path):
    folder = synthetic_files.write_soak(tmp_path)
    for window in range(1, 60):
        synthetic_files.fail_requests(folder, 0.0005 * window, window, window + 1)
    made, failed_rows = failed_requests_of(folder)
    assert set(failed_rows["drift"]) == {"grows"}
    assert list(failed_rows["per_hour"]) == pytest.approx([3.0] * 2, rel=0.05)
    assert set(made.loc["p95", "drift"]) == {"steady"}


def test_a_constant_small_share_of_failed_requests_is_counted_and_steady(tmp_path):
    """Each request fails with a probability of 0.1 %, independently of the other requests."""
    folder, requests = synthetic_files.write_soak(tmp_path), 338  # in each window
    for window, failed in enumerate(np.random.default_rng(0).binomial(requests, 0.001, 60)):
        synthetic_files.fail_requests(folder, failed / requests, window, window + 1)
    _, failed_rows = failed_requests_of(folder)
    assert set(failed_rows["drift"]) == {"steady"} and set(failed_rows["failed_requests"]) == {21}
    assert list(failed_rows["level"]) == pytest.approx([0.1] * 2, abs=0.05)
    assert failed_rows["failing_from_hours"].isna().all()


def test_a_percentile_that_was_infinite_in_each_window_of_a_soak_has_windows(tmp_path):
    folder = synthetic_files.write_soak(tmp_path)
    synthetic_files.fail_requests(folder, 0.5)
    made, failed_rows = failed_requests_of(folder)
    assert set(made.loc["p95", "drift"]) == {"infinite at times"}
    assert set(made.loc["p95", "windows"]) == {59} and made.loc["p95", "level"].isna().all()
    assert set(failed_rows["drift"]) == {"steady"}
    assert list(failed_rows["level"]) == pytest.approx([50.0] * 2, rel=0.01)


@pytest.mark.parametrize(
    ("lost", "first"),
    [
        ([0, 0, 0, 0, 0, 200], 5),  # at any time, also late
        ([200, 0, 0, 0, 20, 20], 0),  # 1.2 % of all requests
        ([50, 0, 0, 0, 20, 0], None),  # the failures end
        ([50, 0, 0, 0, 0, 60], 5),
        ([20, 20, 20, 20, 20, 20], None),  # 0.6 %
        ([60, 60, 60, 60, 60, 60], 0),
    ],
)
def test_a_soak_fails_from_where_on_over_one_percent_of_requests_fail(lost, first):
    windows = failing(np.full(6, 3333), np.array(lost, float))
    assert next(iter(np.flatnonzero(windows)), None) == first


def test_one_failed_request_of_few_is_no_failing_soak():
    assert not failing(np.full(60, 10), np.eye(60)[-1]).any()
    assert not failing(np.array([], int), np.array([])).any()


def test_invalid_windows_say_nothing_of_failed_requests(tmp_path):
    folder = synthetic_files.write_soak(tmp_path)
    synthetic_files.fail_requests(folder, 0.5, last=1)  # this window is invalid
    _, failed_rows = failed_requests_of(folder)
    assert (failed_rows["failed_requests"] == 0).all() and (failed_rows["requests"] > 0).all()


def test_a_soak_that_was_blocked_keeps_its_rows(tmp_path):
    folder = synthetic_files.write_soak(tmp_path)
    rates_rps = dict.fromkeys(synthetic.TRUTH.capacities)
    blocked = {"outcome": "blocked", "reason": "no peaks", "readings": [], "rates_rps": rates_rps}
    write_json(folder / "record.json", synthetic.soak_record() | blocked)
    raw_results.write_windows(folder / "windows.parquet", [])
    made = table_of("soak", folder)
    assert len(made) == 8 and set(made["drift"]) == {"too short to tell"}
    assert set(made["verdict"]) == {"blocked"} and set(made["reason"]) == {"no peaks"}
    assert made[["level", "per_hour", "hours"]].isna().all(axis=None)
    (no_requests,) = set(made.loc[made["unit"] == "%", "requests"])
    assert no_requests == 0


def test_what_a_remote_server_holds_is_unknown(tmp_path):
    folder, record = synthetic_files.write_soak(tmp_path), synthetic.soak_record()
    for reading in record["readings"]:
        reading |= {"memory_bytes": None, "open_files": None}
    write_json(folder / "record.json", record)
    made = table_of("soak", folder).set_index("quantity")
    resources = made.loc[["memory", "open files"]]
    assert set(resources["windows"]) == {0} and resources["level"].isna().all()
    assert set(made.loc["p50", "drift"]) == {"steady"}


def table_of(name, folder):
    read, module = StudyResults.read(synthetic.TASK, [folder], []), tables.module_of(name)
    return parquet.table(list(module.rows(read)), module.SCHEMA.arrow).to_pandas()


SCALING = {1: 20.0, 2: 38.0, 4: 60.0, 8: 66.0, 16: 67.0}


def test_the_knee_of_closed_loops_is_that_of_all_tenants_together(tmp_path):
    (row,) = table_of("knees", synthetic_files.write_scaling(tmp_path, SCALING)).to_dict("records")
    assert (row["law"], row["levels"], row["verdict"]) == ("queueing network", 5, "ok")
    assert row["bracketed"] and row["reason"] == "" and np.isnan(row["kappa"])
    assert row["saturated_rps"] == pytest.approx(2 * 67, rel=0.1)
    assert row["knee"] == pytest.approx(row["saturated_rps"] / row["single_rps"])
    assert row["knee_low"] < row["knee"] < row["knee_high"]


@pytest.mark.parametrize(
    ("answered_rps", "reason"),
    [
        ({1: 20.0, 2: 40.0, 4: 80.0}, "above the highest concurrency (8 requests in flight)"),
        ({2: 40.0, 4: 41.0, 8: 40.0}, "below the lowest concurrency (4 requests in flight)"),
        ({1: 20.0, 2: 38.0}, "the throughput: 2; to find a knee, Perseus needs at least 3"),
        ({1: 20.0, 2: 38.0, 4: 0.0}, "the throughput: 2; to find a knee, Perseus needs at least 3"),
    ],
)
def test_a_knee_that_no_levels_bracket_says_so(tmp_path, answered_rps, reason):
    (row,) = table_of("knees", synthetic_files.write_scaling(tmp_path, answered_rps)).to_dict(
        "records"
    )
    assert reason in row["reason"] and not row["bracketed"]


def test_a_level_at_which_the_client_limited_has_no_part_in_the_knee(tmp_path):
    made = table_of("knees", synthetic_files.write_sweep(tmp_path))
    assert list(made["levels"]) == [2]


def test_closed_loops_that_failed_have_a_knee_that_is_not_known(tmp_path):
    folder = synthetic_files.write_scaling(tmp_path, {})
    failed = {"outcome": "failed", "reason": "the server died", "levels": []}
    write_json(folder / "record.json", synthetic.sweep_record() | failed)
    (row,) = table_of("knees", folder).to_dict("records")
    assert (row["verdict"], row["reason"]) == ("failed", "the server died")
    assert np.isnan(row["knee"])


@pytest.mark.parametrize("started", [0, 2])
def test_a_cell_with_a_start_that_failed_says_so_in_all_its_rows(tmp_path, started):
    folder, record = synthetic_files.write_startup(tmp_path), synthetic.startup_record()
    failed = {"outcome": "failed", "reason": f"start {started + 1}: it ended early"}
    write_json(folder / "record.json", record | failed | {"starts": record["starts"][:started]})
    found = table_of("startup", folder)
    assert list(found["tenant"]) == [SLOW, QUICK] * max(started, 1)
    assert found["ready_s"].notna().tolist() == [started > 0] * len(found)
    assert set(found["verdict"]) == {"failed"} and set(found["reason"]) == {failed["reason"]}


def test_a_load_that_no_log_tells_is_null(tmp_path):
    folder, record = synthetic_files.write_startup(tmp_path), synthetic.startup_record()
    for start in record["starts"]:
        start["load_s"] = {}
    write_json(folder / "record.json", record)
    read = StudyResults.read(synthetic.TASK, [folder], [])
    schema = tables.module_of("startup").SCHEMA.arrow
    made = parquet.table(list(tables.module_of("startup").rows(read)), schema).to_pandas()
    assert len(made) and made["load_s"].isna().all() and made["ready_s"].notna().all()


def test_the_page_cache_of_a_remote_server_is_unknown(tmp_path):
    folder, record = synthetic_files.write_startup(tmp_path), synthetic.startup_record()
    record["cell"]["server"] |= {"launcher": "remote", "remote": {"host": "10.0.0.7"}}
    write_json(folder / "record.json", record)
    found = table_of("startup", folder)
    assert len(found) and found["resident_share"].isna().all() and found["ready_s"].notna().all()


def test_every_verdict_keeps_its_row_and_says_why(peaks):
    verdicts = peaks["verdict"].to_dict()
    assert verdicts["mix-1-1"] == "ok"
    assert verdicts["mix-3-1"] == "infeasible"
    assert verdicts["hold-resnet18-50"] == "uncertified"
    assert verdicts["hold-mobilenet_v3_large-50"] == "failed"
    assert peaks.loc["hold-mobilenet_v3_large-50", "reason"].endswith(
        "server ended during the measurement"
    )
    assert peaks.loc[["mix-3-1", "hold-mobilenet_v3_large-50"], "estimate_rps"].isna().all()


def test_windows_of_an_attempt_that_does_not_stand_are_in_no_table(tmp_path):
    truth = synthetic.Truth(synthetic.TRUTH.capacities, repeats=1)
    (made,) = [r for r in synthetic.records(truth, mixes=[(1, 1)], holds=()) if r["dedicated_rps"]]
    (folder,) = synthetic_files.write(tmp_path, [made])
    rows = Record.read(folder).windows()
    assert {row["attempt"] for row in rows} == {1}
    more = [row | {"attempt": 2, "window": row["window"] + 12} for row in rows]
    raw_results.write_windows(folder / "windows.parquet", rows + more)
    for attempt, first in ((1, 0), (2, 12)):
        stands = {"attempt": attempt, "certified_window": first + 7}
        write_json(folder / "record.json", made | stands)
        record = PeakRecord.read(folder)
        assert {row["window"] for row in record.windows()} == set(range(first, first + 12))
        of_cell = windows.certified([record])[folder]
        assert {row["window"] for row in of_cell} == {first + n for n in (7, 8, 9)}
        starts_ns = {row["window"]: row["start_ns"] for row in record.windows()}
        of_speed = windows.of_speed([record])[folder]
        looks = [starts_ns[first + n] for n in (10, 10, 11, 11)]
        assert [row["start_ns"] for row in of_speed] == looks


def test_windows_of_many_cells_are_those_of_each(tmp_path):
    cells = synthetic_files.write(tmp_path, synthetic.with_failures(synthetic.records()))
    records = [PeakRecord.read(cell) for cell in cells]
    together = windows.certified(records)
    assert list(together) == cells
    for record, rows in zip(records, together.values(), strict=True):
        alone = windows.certified([record])[record.folder]
        assert f"{rows}" == f"{alone}"  # NaN is not equal to NaN
        with_one = record.task.tenants if record.certified_window >= 0 else ()
        first = rows[: len(record.task.tenants)]
        assert [row["tenant"] for row in first] == [tenant.name for tenant in with_one]


def test_every_outcome_has_its_rank():
    assert set(WORST_FIRST) == set(Outcome)


def test_a_client_at_its_limit_gives_a_bound_but_no_estimate(peaks):
    row = peaks.loc["mix-1-3"]
    assert row["verdict"] == "client_limited"
    assert row["certified_rps"] > 0
    assert np.isnan(row["estimate_rps"])


@pytest.mark.parametrize(
    ("outcome", "open_end"),
    [("infeasible", "low"), ("failed", "low"), ("unsteady", "low"), ("client_limited", "high")],
)
def test_a_lost_repeat_leaves_an_end_of_the_interval_open(outcome, open_end):
    made = synthetic.records(repeated(3), mixes=[(1, 1)], holds=())
    whole, found = (
        synthetic_files.tables_of(each)
        for each in (made, synthetic.with_lost(made, "mix-1-1", outcome))
    )
    peak, saving, cost = (row_of(found, name) for name in ("peaks", "savings", "costs"))
    assert (peak["repeats"], peak["repeats_used"]) == (3, 2)
    assert (saving["repeats"], saving["repeats_used"]) == (3, 2)
    assert saving["probability_of_saving"] is None
    assert row_of(whole, "savings")["probability_of_saving"] is not None
    if open_end == "low":
        assert (peak["ci_low_rps"], peak["sharing_ratio_low"], peak["ci_low_scale"]) == (0, 0, 0)
        assert (saving["ci_low"], saving["ci_simultaneous_low"]) == (-np.inf, -np.inf)
        assert cost["ci_high_usd"] == np.inf and 0 < cost["ci_low_usd"] < np.inf
        assert peak["estimate_rps"] < peak["ci_high_rps"] < np.inf
    else:
        assert (peak["ci_high_rps"], peak["sharing_ratio_high"]) == (np.inf, np.inf)
        assert (saving["ci_high"], saving["ci_simultaneous_high"]) == (1, 1)
        assert cost["ci_low_usd"] == 0 and cost["ci_high_usd"] < np.inf
        assert 0 < peak["ci_low_rps"] < peak["estimate_rps"]


def test_a_repeat_that_was_lost_for_no_reason_of_the_server_leaves_both_ends_open():
    made = synthetic.records(repeated(3), mixes=[(1, 1)], holds=())
    peak = row_of(synthetic_files.tables_of(synthetic.with_lost(made, "mix-1-1", "ok")), "peaks")
    assert (peak["repeats_used"], peak["ci_low_rps"], peak["ci_high_rps"]) == (2, 0, np.inf)


def test_a_lost_repeat_of_a_dedicated_peak_leaves_the_ratio_open_above():
    """A lower dedicated peak would mean a larger saving."""
    made = synthetic.records(repeated(3), mixes=[(1, 1)], holds=())
    for record in made:
        if record["cell"]["cell"] == "cpu1.resnet18.peak.r2":
            record |= synthetic.with_outcome(record, "infeasible", "it was lost")
    row = row_of(synthetic_files.tables_of(made), "savings")
    assert row["ci_high"] == 1 and np.isfinite(row["ci_low"])


def repeated(repeats):
    return synthetic.Truth(synthetic.TRUTH.capacities, repeats=repeats)


def row_of(found, table):
    return next(row for row in found[table].to_pylist() if row["load_line"] == "mix-1-1")


def test_certified_is_the_smallest_of_the_repeats_and_none_if_one_has_none():
    twice = [r for r in synthetic.records() if r["cell"]["run"]["name"] == "mix-1-1"]
    peak = combine(synthetic.loaded(twice), seed=1)
    assert peak.certified[0] == min(r["certified_scale"] for r in twice)
    once = [twice[0], synthetic.with_outcome(twice[1], "uncertified", "no rate passed")]
    peak = combine(synthetic.loaded(once), seed=1)
    assert np.isnan(peak.certified[0])
    assert (peak.verdict, peak.reason) == ("uncertified", "repeat 2: no rate passed")


def test_a_line_draws_the_same_whatever_else_is_measured():
    made = synthetic.loaded(synthetic.records())
    everything = group(made, seed=1)
    ((of, alone),) = group(made[:2], seed=1).items()
    np.testing.assert_array_equal(everything[of].rates_draws_rps, alone.rates_draws_rps)


def test_more_than_thirty_repeats_are_fine():
    truth = synthetic.Truth({"a": 30.0}, repeats=40, bootstraps=20)
    peak = combine(synthetic.loaded(synthetic.records(truth, mixes=(), holds=())), seed=1)
    assert peak.rates_rps[0] == pytest.approx(30, rel=0.02)


def test_a_table_refuses_a_row_with_other_columns():
    with pytest.raises(KeyError, match="certified_rps"):
        parquet.table([{"study": "x"}], tables.module_of("peaks").SCHEMA.arrow)


def test_every_column_says_what_it_means():
    for table in tables.TABLES:
        for field in tables.module_of(table).SCHEMA.arrow:
            assert field.metadata[b"meaning"], field.name


def test_the_data_dictionary_is_up_to_date():
    assert (ROOT / "docs/reference/data.md").read_text() == dictionary(), (
        "run: PYTHONPATH=scripts python -m perseus.results.dictionary > docs/reference/data.md"
    )


def test_what_measurements_leave_is_described_key_by_key():
    for found, model in (
        (synthetic.records()[0], PeakRecord),
        (synthetic.sweep_record(), ConcurrencyRecord),
        (synthetic.slowdown_record(), SlowdownRecord),
        (synthetic.replay_record(), ReplayRecord),
        (synthetic.soak_record(), SoakRecord),
        (synthetic.ceiling(), Ceiling),
    ):
        assert found.keys() == keys(model).keys()


def test_a_rule_reads_the_lists_of_tables_and_figures_at_no_cost():
    assert not {"numpy", "pandas", "pyarrow", "scipy", "matplotlib"} & loaded_by(
        "perseus.results.tables, perseus.report.figures"
    )


def test_tables_need_no_torch_and_no_triton():
    every = ", ".join(f"perseus.results.tables.{name}" for name in tables.TABLES)
    loaded = loaded_by(f"{every}, perseus.report.drawing, perseus.report.page")
    assert not {"torch", "tritonclient", "pytriton", "grpc"} & loaded


def test_tables_are_made_where_nothing_can_check_them():
    """For example, a machine to which a study is carried may lack the packages for the checks."""
    modules = ", ".join(f"perseus.results.tables.{name}" for name in tables.TABLES)
    loaded = loaded_by(modules)
    assert "pyarrow" in loaded  # the tables need pyarrow, but no slow import
    assert not {"pandera", "pandas", "scipy.stats", "pyarrow.dataset"} & loaded


def loaded_by(modules):
    """Return all modules that these imports load."""
    code = f"import {modules}, sys; print(*sys.modules)"
    return set(
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT / "scripts",
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
    )


def slowdowns(folder, change=lambda record: None):
    """Return the rows of the table of pairs by pair. `change` edits the record."""
    record = synthetic.slowdown_record()
    change(record)
    write_json(folder / "record.json", record)
    rows = tables.module_of("slowdown").rows(StudyResults.read(synthetic.TASK, [folder], []))
    return {(row["tenant"], row["beside"]): row for row in rows}


SLOW, QUICK = tuple(synthetic.TRUTH.capacities)


def test_every_tenant_has_a_row_beside_every_other_and_beside_itself(tmp_path):
    found = slowdowns(tmp_path)
    assert list(found) == [(SLOW, SLOW), (SLOW, QUICK), (QUICK, SLOW), (QUICK, QUICK)]
    for (tenant, beside), row in found.items():
        truth = 1.0 if tenant == beside else synthetic.PAIR_SLOWDOWN
        assert row["slowdown"] == pytest.approx(truth, rel=0.05)
        assert row["slowdown_low"] < truth < row["slowdown_high"] < np.inf
        assert row["p95_slowdown"] == pytest.approx(row["slowdown"])
        assert row["p95_slowdown_low"] < truth < row["p95_slowdown_high"] < np.inf
        assert row["alone_mean_ms"] == pytest.approx(10, rel=0.05)
        assert row["mean_ms"] / row["alone_mean_ms"] == pytest.approx(row["slowdown"])
        assert (row["verdict"], row["comparisons"]) == ("ok", synthetic.ROUNDS)
        assert (row["rate_rps"], row["beside_rps"], row["over_sla"]) == (9, 9, 0)
        assert row["beyond_noise"] is (None if tenant == beside else True)


def steps_of(record, tenants):
    return [step for step in record["steps"] if len(step["tenants"]) == tenants]


def make_invalid(step):
    step |= {"outcome": "disturbed", "reason": "the host was busy", "seen": {}}


def test_an_invalid_window_takes_no_more_than_its_own_comparisons(tmp_path):
    found = slowdowns(tmp_path, lambda record: make_invalid(steps_of(record, 2)[0]))
    assert {pair: row["comparisons"] for pair, row in found.items()} == {
        (SLOW, SLOW): 3, (SLOW, QUICK): 2, (QUICK, SLOW): 2, (QUICK, QUICK): 3
    }  # fmt: skip
    assert {row["verdict"] for row in found.values()} == {"ok"}


def test_a_pair_that_was_always_invalid_is_a_row_that_says_so(tmp_path):
    def change(record):
        for step in steps_of(record, 2):
            make_invalid(step)

    found = slowdowns(tmp_path, change)
    row = found[SLOW, QUICK]
    assert row["verdict"] == "disturbed" and row["reason"].endswith(": the host was busy")
    assert row["slowdown"] is row["beyond_noise"] is None and row["comparisons"] == 0
    assert found[SLOW, SLOW]["verdict"] == "ok"


def test_a_pair_that_the_server_does_not_keep_up_with_has_no_slowdown(tmp_path):
    """In one of three rounds, the server answers only 80 % of the requests. The latency in such a
    window depends on the length of the window."""

    def change(record):
        steps_of(record, 2)[1]["seen"][SLOW]["completed_ratio"] = 0.8

    found = slowdowns(tmp_path, change)
    row = found[SLOW, QUICK]
    assert (row["verdict"], row["slowdown"]) == ("infeasible", None)
    assert row["reason"].endswith(f"the server answered 80.0% of {SLOW}'s requests")
    assert found[QUICK, SLOW]["verdict"] == "ok"


def test_a_window_alone_that_was_not_fully_answered_is_left_out_of_its_comparisons(tmp_path):
    """Only windows of the pair show that the server cannot keep up with the pair."""

    def change(record):
        first = next(step for step in record["steps"] if step["tenants"] == [SLOW])
        first["seen"][SLOW]["completed_ratio"] = 0.98

    found = slowdowns(tmp_path, change)
    assert {row["verdict"] for row in found.values()} == {"ok"}
    assert sum(row["comparisons"] for (tenant, _), row in found.items() if tenant == SLOW) < 6


def test_a_tenant_that_is_never_answered_alone_is_too_much_alone_and_not_with_another(tmp_path):
    def change(record):
        for step in steps_of(record, 1):
            if SLOW in step["seen"]:
                step["seen"][SLOW]["completed_ratio"] = 0.5

    found = slowdowns(tmp_path, change)
    alone, shared = found[SLOW, SLOW], found[SLOW, QUICK]
    assert (alone["verdict"], shared["verdict"]) == ("infeasible", "uncertified")
    assert shared["reason"] == f"{SLOW} alone: the server answered 50.0% of {SLOW}'s requests"
    assert found[QUICK, SLOW]["verdict"] == "ok"


def test_a_tenant_without_requests_says_nothing(tmp_path):
    def change(record):
        for step in record["steps"]:
            if SLOW in step["seen"]:
                nothing = {"value": None, "low": None, "high": None}
                step["seen"][SLOW] |= {
                    "requests": 0,
                    "mean_ms": nothing,
                    "p95_ms": nothing,
                }

    found = slowdowns(tmp_path, change)
    assert {row["verdict"] for (tenant, _), row in found.items() if tenant == SLOW} == {
        "uncertified"
    }
    assert found[QUICK, SLOW]["verdict"] == "ok"


def test_windows_over_the_sla_are_counted_and_have_a_slowdown(tmp_path):
    def change(record):
        for step in steps_of(record, 2)[:2]:
            step["seen"][SLOW]["verdict"] = "fail"

    row = slowdowns(tmp_path, change)[SLOW, QUICK]
    assert (row["over_sla"], row["comparisons"], row["verdict"]) == (2, 3, "ok")


def test_a_slowdown_like_that_of_the_tenant_beside_itself_is_noise(tmp_path):
    def change(record):
        for step in steps_of(record, 2):
            for seen in step["seen"].values():
                for name in ("mean_ms", "p95_ms"):
                    seen[name] = {
                        end: value and value / synthetic.PAIR_SLOWDOWN
                        for end, value in seen[name].items()
                    }

    assert slowdowns(tmp_path, change)[SLOW, QUICK]["beyond_noise"] is False


@pytest.mark.parametrize("outcome", ["blocked", "failed"])
def test_a_cell_that_measured_no_pair_has_rows_that_say_why(tmp_path, outcome):
    def change(record):
        nothing = {"steps": [], "rates_rps": dict.fromkeys((SLOW, QUICK))}
        record |= {"outcome": outcome, "reason": "why", **nothing}

    found = slowdowns(tmp_path, change)
    assert len(found) == 4
    assert {(row["verdict"], row["reason"]) for row in found.values()} == {(outcome, "why")}
    parquet.table(list(found.values()), tables.module_of("slowdown").SCHEMA.arrow)


@pytest.fixture(scope="module")
def beside():
    """Return a study with each tenant searched beside the other, and with mixes."""
    made = synthetic.records(holds=()) + synthetic.background_records(rates_rps=[(6.0,)])
    return {name: table.to_pandas() for name, table in synthetic_files.tables_of(made).items()}


def test_a_tenant_beside_others_that_stay_has_a_row_per_cell_and_the_truth(beside):
    found = beside["background"]
    assert len(found) == 2 * 4 * synthetic.TRUTH.repeats
    assert (found["verdict"] == "ok").all()
    for row in found.to_dict("records"):
        other = QUICK if row["searched"] == SLOW else SLOW
        assert row["background_tenants"] == other
        background = row["background_rps"] / synthetic.TRUTH.capacities[other]
        assert row["background_share"] == pytest.approx(background, rel=0.06)
        share = synthetic.TRUTH.gain - background
        assert row["share"] == pytest.approx(share, rel=0.1)
        assert row["share_low"] < row["share"] < row["share_high"]
        assert row["share"] + row["background_share"] == pytest.approx(row["sharing_ratio"])
        assert row["dedicated_low_rps"] < row["dedicated_rps"] < row["dedicated_high_rps"]
        assert row["peak_low_rps"] < row["peak_rps"] < row["peak_high_rps"]
        assert row["certified_rps"] == pytest.approx(0.9 * row["estimate_rps"])
    of_line = found[found["load_line"] == f"background-{SLOW}-50"]
    assert of_line["peak_rps"].nunique() == 1
    assert of_line["estimate_rps"].mean() == pytest.approx(of_line["peak_rps"].iloc[0])


def test_a_search_beside_others_that_stay_is_a_peak_like_any_other(beside):
    peaks = beside["peaks"].set_index("load_line")
    words = {
        f"background-{SLOW}-25": f"{SLOW} beside {QUICK} held at 25 %",
        f"background-{QUICK}-at-0": f"{QUICK} beside {SLOW} held at 6 requests/s",
    }
    for line, mix in words.items():
        assert (peaks.loc[line, "kind"], peaks.loc[line, "mix"]) == ("hold", mix)
        assert peaks.loc[line, "sharing_ratio"] == pytest.approx(1.25, rel=0.06)
    rows = beside["background"].drop_duplicates("load_line").set_index("load_line")
    for name in ("sharing_ratio", "sharing_ratio_low", "sharing_ratio_high"):
        np.testing.assert_allclose(rows[name], peaks.loc[rows.index, name])
    for table in ("tenants", "costs", "savings"):
        assert set(rows.index) <= set(beside[table]["load_line"])


def test_shares_are_of_dedicated_peaks_at_the_speed_of_the_cell():
    """The share of the searched tenant and the share of the background load add up to the sharing
    ratio."""
    truth = synthetic.Truth(synthetic.TRUTH.capacities, repeats=1, host=0.2)
    made = synthetic.records(truth, mixes=(), holds=()) + synthetic.background_records(truth)
    rows = synthetic_files.tables_of(made)["background"].to_pylist()
    plain = [row["peak_rps"] / row["dedicated_rps"] for row in rows]
    assert max(abs(row["share"] / each - 1) for row, each in zip(rows, plain, strict=True)) > 0.1
    for row in rows:
        assert row["share"] + row["background_share"] == pytest.approx(row["sharing_ratio"])


def test_of_three_tenants_all_but_the_searched_stay():
    truth = synthetic.Truth({"a": 30.0, "b": 90.0, "c": 50.0}, repeats=1, bootstraps=50)
    made = synthetic.records(truth, mixes=(), holds=())
    made += synthetic.background_records(truth, percents=(20,), rates_rps=[(9.0, 5.0)])
    rows = synthetic_files.tables_of(made)["background"].to_pylist()
    found = {row["load_line"]: row for row in rows}
    row = found["background-b-20"]
    assert (row["background_tenants"], row["background_at"]) == ("a + c", "20 %")
    assert row["background_rps"] == pytest.approx(0.2 * 80)
    assert row["background_share"] == pytest.approx(0.4, rel=0.1)
    row = found["background-b-at-0"]
    assert (row["background_at"], row["background_rps"]) == ("9, 5 requests/s", 14)
    assert row["share"] == pytest.approx(1.25 - 9 / 30 - 5 / 50, rel=0.15)


def test_a_search_that_found_nothing_beside_others_still_says_what_they_stayed_at():
    made = synthetic.records(mixes=(), holds=())
    beside = synthetic.background_records(percents=(50,))
    made += [synthetic.with_outcome(record, "infeasible", "too slow") for record in beside]
    for row in synthetic_files.tables_of(made)["background"].to_pylist():
        assert (row["verdict"], row["reason"]) == ("infeasible", "too slow")
        assert row["background_share"] == pytest.approx(0.5, rel=0.06)
        assert row["peak_rps"] is row["share"] is row["sharing_ratio"] is None


def test_without_dedicated_peaks_there_are_no_shares():
    beside = synthetic.background_records(percents=(50,))
    for row in synthetic_files.tables_of(beside)["background"].to_pylist():
        assert row["peak_rps"] > 0
        assert row["dedicated_rps"] is row["share"] is row["background_share"] is None
