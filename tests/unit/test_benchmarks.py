"""Tests of the parts of the benchmarks: parsers, models of the peers, rows and the page.

The tests measure no speeds.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import runpy
import sys
from dataclasses import replace
from unittest.mock import MagicMock

import numpy as np
import pyarrow.parquet as pq
import pytest
from google.protobuf import json_format, text_format
from tritonclient.grpc.model_config_pb2 import ModelConfig

from benchmarks import (
    ablation,
    aggregation,
    aiperf,
    client,
    compare,
    coverage,
    drawn_servers,
    generated_study,
    honesty,
    limit,
    noise,
    peer_search,
    queueing,
    ramp,
    repeatability,
    search_cost,
    servers,
    sharing,
)
from benchmarks.aiperf import AIPerf
from benchmarks.models import KNOWN_BACKENDS, Sleep, Spin, write_sleep, write_spin
from benchmarks.page import PAGE, RESULTS, page
from benchmarks.peer_search import Level, Mode
from benchmarks.perf_analyzer import FetchError, Package, Report, fetch, parse_levels
from benchmarks.ramp import REQUESTS, Pass
from benchmarks.results import COLUMNS, Goal, Row, read_cells, write_rows
from benchmarks.simulation import STEP_S, Host, SimulatedServer, deterministic, exponential
from perseus.host.files import write_json
from perseus.peak import tenant_limit
from perseus.study import planning
from perseus.study.sla import Sla
from perseus.traffic.arrivals import Arrivals

SLA = Sla(latency_ms=50)
MM1_LIMIT_RPS = 200 - np.log(20) / 0.05  # 5 ms, p95 <= 50 ms
HEADER = "Inferences/Second,Client Send,p50 latency,p90 latency,p95 latency,p99 latency"


# --- the truth


def test_limits_are_those_of_queueing_theory():
    assert queueing.limit_rps(exponential(0.005), SLA) == pytest.approx(MM1_LIMIT_RPS, rel=0.01)
    assert queueing.limit_rps(deterministic(0.005), SLA) == pytest.approx(169.6, rel=0.01)


def test_every_so_many_requests_stall():
    service = queueing.stalling(0.005, 0.3, every=4)
    drawn = service(np.random.default_rng(0), 8)
    assert drawn == pytest.approx([0.005, 0.005, 0.005, 0.305] * 2)


# --- tables of many requests


def test_a_generated_study_has_its_requests_and_tables_are_made_of_it(tmp_path):
    """The generated study has the cells of the study `scale` on one server.

    All cells have a certified rate.
    """
    study = generated_study.study(servers=1)
    cells = generated_study.write(study, 100_000, tmp_path / "raw")
    assert [cell.name for cell in cells] == list(study.cells)
    rows = [pq.read_metadata(cell / "requests.parquet").num_rows for cell in cells]
    assert sum(rows) == pytest.approx(100_000, rel=0.03)
    write_json(tmp_path / "tables.json", planning.tables_task(study).plain())
    # This process uses 1 GiB. The peak memory of the job must not include this memory.
    mine = np.ones(2**27)
    made = aggregation.job(tmp_path, "tables")
    assert mine[-1] == 1 and 0 < made.took_s < 100 and 2**26 < made.rss_bytes < 2**30
    peaks = pq.read_table(tmp_path / "tables/peaks.parquet").to_pandas()
    assert len(peaks) == len(cells) and set(peaks["verdict"]) == {"ok"}
    shared = peaks[peaks["kind"] == "mix"]
    assert shared["sharing_ratio"].median() == pytest.approx(generated_study.GAIN, rel=0.03)


# --- two results compared


def test_a_simulated_pair_is_flagged_if_it_differs():
    case = compare.Case(between=0.02, repeats=2)
    assert not compare.flags(compare.compared(case, 1, 1.0))
    assert compare.flags(compare.compared(case, 1, 1.3))
    assert 0.02 < compare.reach(compare.compared(case, 1, 1.0)) < 0.3


# --- repeatability


def peaks(ratio: float, width: float, verdict_rps: float | None = 100.0) -> repeatability.Peaks:
    """Return a dedicated peak and a mix.

    The interval of the sharing ratio has the width `width` on a logarithmic scale.
    """
    low, high = ratio * np.exp(-width / 2), ratio * np.exp(width / 2)
    alone = {"kind": "dedicated", "mix": "resnet18", "estimate_rps": 50.0}
    shared = {"kind": "mix", "mix": "resnet18 1 : 1 resnet34", "estimate_rps": verdict_rps}
    ends = {"sharing_ratio": ratio, "sharing_ratio_low": low, "sharing_ratio_high": high}
    return [alone, shared | (ends if verdict_rps else dict.fromkeys(ends))]


def figures_of(*runs: repeatability.Peaks) -> list[float]:
    """Return three numbers: the share of cells with an estimate, the share of pairs of runs with
    overlapping intervals, and the spread between the runs divided by the claimed spread."""
    return [row.ours for row in repeatability.rows_of("here", runs)][:3]


def test_runs_that_agree_and_one_that_does_not():
    same = figures_of(peaks(0.8, 0.2), peaks(0.8, 0.2), peaks(0.81, 0.2))
    assert same[:2] == [1, 1] and same[2] < 0.2
    apart = figures_of(peaks(0.8, 0.2), peaks(0.8, 0.2), peaks(1.0, 0.2))
    assert apart[1] == pytest.approx(1 / 3) and apart[2] > 2


def test_a_run_without_an_answer_agrees_with_none():
    estimates, pairs, _ = figures_of(peaks(0.8, 0.2), peaks(0.8, 0.2), peaks(0.8, 0.2, None))
    assert estimates == pytest.approx(5 / 6) and pairs == pytest.approx(1 / 3)


# --- the noise of a host


def test_a_pause_counts_once_where_it_begins():
    gaps_s = np.r_[np.full(300, 0.005), 0.5, np.full(300, 0.005)]
    steps_s = noise.mean_gaps_s(np.cumsum(gaps_s))
    assert np.count_nonzero(steps_s > 0.006) == 1 and np.median(steps_s) == pytest.approx(0.005)


def test_a_recording_is_read_as_it_was_written_and_tells_its_deviation(tmp_path, monkeypatch):
    monkeypatch.setattr(noise, "FOLDER", tmp_path)
    minute = round(60 / noise.STEP_S)
    factors = np.repeat([0.9, 1.1] * 5, minute)
    noise.Recording("A(R) Processor", "resnet18", 90.0, factors).write()
    (found,) = noise.recordings()
    assert (found.name, list(tmp_path.glob("*"))) == (
        "A(R) Processor, resnet18",
        [tmp_path / "a-processor-resnet18.parquet"],
    )
    assert (found.answers_per_s, found.factors) == (90, pytest.approx(factors))
    assert found.deviation(60) == pytest.approx(np.log(1.1 / 0.9) / 2, rel=0.06)
    assert found.deviation(120) == pytest.approx(0, abs=1e-9)
    replayed = found.as_host.factors(np.random.default_rng(0), 1200)
    assert len(replayed) == 1200 / STEP_S and np.mean(replayed) == pytest.approx(1)
    assert np.count_nonzero(np.diff(replayed)) in (19, 20)


class SlowerLater:
    """A host that becomes slower after 260 s, when both tenants first have load together.

    Service times are then 1.2 times as long.
    """

    def factors(self, rng, seconds):
        return np.where(np.arange(int(seconds / STEP_S)) * STEP_S < 260, 1.0, 1.2)


def test_a_study_of_two_tenants_finds_their_ratio_although_the_host_gets_slower():
    (pair, *_), truth = sharing.PAIRS.values(), 0.917  # the true ratio on the slower host
    found = sharing.study(pair, SlowerLater(), 0)
    assert found.ratio.interval().low < truth < found.ratio.interval().high
    assert found.ratio.value == pytest.approx(truth, rel=0.03)
    assert found.by_searches.value < 0.85 * truth
    rows = {row.metric: row.ours for row in sharing.rows_of("a case", [found], truth)}
    assert rows["share of 95 % intervals that contain the truth (higher is better)"] == 1
    of_searches = found.by_searches.interval()
    assert rows["width of the interval / truth"] < (of_searches.high - of_searches.low) / truth / 2


# --- AIPerf

WITH_BOUNDARY = {"boundary_summary": {"feasible_max": {"value": 135}, "infeasible_min": None}}


def fake_aiperf(folder, history):
    """Return AIPerf with a program that only checks its requests and writes the history."""
    program = folder / "program"
    program.write_text(
        f"""#!{sys.executable}
import json, pathlib, sys
given = dict(zip(sys.argv[2::2], sys.argv[3::2]))
(body,) = map(json.loads, open(given["--input-file"]))
assert body["inputs"][0]["data"] == [0.0] * 6 and body["inputs"][0]["shape"] == [1, 2, 3]
assert given["--url"] == "http://127.0.0.1:9/v2/models/sleep/infer"
out = pathlib.Path(given["--output-artifact-dir"])
out.mkdir(parents=True, exist_ok=True)
if {bool(history)}:
    (out / "search_history.json").write_text({json.dumps(json.dumps(history))})
"""
    )
    program.chmod(0o755)
    return AIPerf(program, folder / "files", tuple(os.sched_getaffinity(0)))


@pytest.mark.parametrize(
    ("history", "peak_rps"),
    [(WITH_BOUNDARY, 135), ({"boundary_summary": {"feasible_max": None}}, 0)],
)
def test_the_boundary_of_aiperf_is_read_from_its_history(tmp_path, history, peak_rps):
    found = fake_aiperf(tmp_path, history).search("127.0.0.1:9", "sleep", (1, 2, 3), [])
    assert found.peak_rps == peak_rps and found.wall_s > 0


def test_a_search_of_aiperf_without_a_history_fails(tmp_path):
    with pytest.raises(RuntimeError, match="AIPerf ended with 0"):
        fake_aiperf(tmp_path, {}).search("127.0.0.1:9", "sleep", (1, 2, 3), [])


def test_triton_ignores_the_key_that_aiperf_requires():
    body = aiperf.request((1, 1))
    assert body["messages"] == [] and body["inputs"][0]["data"] == [0.0]


# --- perf_analyzer


def test_the_cheapest_mode_is_one_that_keeps_up():
    lazy, dear, cheap = client.Use(50, 10), client.Use(100, 90), client.Use(98, 60)
    assert client.cheapest([lazy, dear, cheap], 100) == cheap
    assert client.cheapest([lazy], 100) == lazy


@pytest.mark.parametrize(("rate_rps", "met"), [(96, False), (97, True)])
def test_perseus_meets_no_cpu_goal_below_the_offered_rate(rate_rps, met):
    goal = client.cpu_goal(0.6, client.Use(rate_rps, 10), 100)
    assert goal.met(0.5) is met and not goal.met(0.7)


@pytest.mark.parametrize("load", [client._ours, client._ours_open])
def test_a_failed_request_of_perseus_ends_a_trial(load, monkeypatch):
    monkeypatch.setattr(client, "_observe", lambda *_: client.Use(100, 10))
    sender = MagicMock()
    sender.result.return_value.errors = {"refused": "connection refused"}
    with pytest.raises(RuntimeError, match="requests of Perseus failed"):
        load(MagicMock(), sender, 4)


@pytest.mark.parametrize("load", ["Concurrency", "Request Rate"])
def test_levels_are_read_in_milliseconds(load):
    (level,) = parse_levels(f"{load},{HEADER}\n16,1668.03,24,2009,2940,5052,8909\n\n")
    assert (level.load, level.p95_ms, level.p99_ms) == (16, 5.052, 8.909)


def test_a_load_without_a_level_is_unstable_and_has_no_figures():
    seen = honesty.seen(Report((), 50.0), 99)
    assert not seen.stable and math.isnan(seen.percentile_ms)


def test_a_level_is_stable():
    levels = parse_levels(f"Request Rate,{HEADER}\n100,99.1,1,2000,3000,4000,5000\n")
    assert honesty.seen(Report(levels, 20.0), 99) == honesty.Seen(5.0, True)


@pytest.mark.parametrize("program", ["import sys; sys.exit(3)", "open('file', 'w').write('else')"])
def test_a_file_that_cannot_be_had_or_is_another_is_asked_for_by_hand(program, tmp_path):
    package = Package("file", "0" * 64, (sys.executable, "-c", program))
    with pytest.raises(FetchError, match=r"Put file \(sha256 0+\) into .* by hand"):
        fetch(package, tmp_path)
    assert not (tmp_path / "file").exists()


def test_its_search_halves_between_a_passing_and_a_failing_end():
    tried = []

    def level(rate_rps: float) -> Level:
        tried.append(rate_rps)
        return Level(rate_rps <= 70, 10, 5.0)

    found = peer_search.search(level, 20, 100, 5)
    assert tried == [20, 100, 60, 80, 70, 75]
    assert (found.peak_rps, found.requests, found.seconds) == (70, 60, 30.0)


@pytest.mark.parametrize(("limit_rps", "peak_rps", "seconds"), [(10, 0, 5.0), (200, 100, 10.0)])
def test_its_search_ends_at_an_end_that_does_not_bracket(limit_rps, peak_rps, seconds):
    found = peer_search.search(lambda rate: Level(rate <= limit_rps, 1, 5.0), 20, 100, 5)
    assert (found.peak_rps, found.seconds) == (peak_rps, seconds)


def test_blocking_senders_hide_an_overload_that_async_shows():
    def passed(*, blocking: bool) -> bool:
        rng = np.random.default_rng(1)
        mode = Mode(blocking, window_s=60)
        return peer_search.simulated_level(220, deterministic(0.005), SLA, rng, mode).passed

    assert passed(blocking=True) and not passed(blocking=False)


# --- the ramp


def test_the_ramp_takes_the_running_maximum_and_rises_after_a_violation():
    slow = {20.0, 40.0, 50.0, 60.0}

    def offer(rate_rps: float) -> Pass:
        return Pass(rate_rps, np.full(REQUESTS, 90.0 if rate_rps in slow else 10.0))

    found = ramp.climb(offer, [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0], SLA)
    assert (found.peak_rps, found.passes, found.requests) == (30.0, 6, 6 * REQUESTS)


def test_the_ramp_comes_near_the_limit_of_a_simulated_server():
    service = exponential(0.005)
    case = search_cost.Case("M/M/1", service, 0.005, SLA)
    cost = search_cost.ramp_cost(case, MM1_LIMIT_RPS, np.random.default_rng(3))
    assert cost.error < 0.1
    assert 20 <= cost.requests / REQUESTS <= 35  # published logs have at least 27 passes


# --- coverage of the intervals


def test_coverage_is_counted_against_the_truth():
    found = [
        servers.Found(100, 100, 90, 95, 105, 60),
        servers.Found(50, 52, 51, 50.5, 54, 60),
        servers.Found(100, np.nan, np.nan, np.nan, np.nan, 20),
    ]
    figures = {row.metric: row.ours for row in coverage.rows_of("server", found, coverage.NOMINAL)}
    above, covered, *_ = figures.values()
    assert (above, covered) == (1 / 2, pytest.approx(1 / 3))
    assert figures["certified / truth"] == pytest.approx(0.96)
    _, above, _ = (row.ours for row in coverage.long_run_rows("server", found, 40))
    assert above == 1


def test_without_a_certified_rate_no_goal_is_about_certified_rates():
    found = [servers.Found(100, estimate, np.nan, 95, 105, 60) for estimate in (99, 101)]
    with pytest.warns(RuntimeWarning, match="empty slice"):  # the mean of no certified rates
        above, covered, *_ = coverage.rows_of("server", found, coverage.NOMINAL)
    assert math.isnan(above.ours) and above.goal is None and covered.goal == coverage.NOMINAL


def test_a_server_drawn_at_random_is_the_same_each_time_and_another_for_each_seed():
    first, again, other = (drawn_servers.drawn(seed) for seed in (3, 3, 4))
    assert (first.slas, first.start_rps) == (again.slas, again.start_rps)
    works_s = [each.services[0](np.random.default_rng(0), 9) for each in (first, again, other)]
    assert (works_s[0] == works_s[1]).all() and not (works_s[0] == works_s[2]).any()
    for seed in range(50):
        server = drawn_servers.drawn(seed)
        ratio = server.slas[0].latency_ms / 1000 * server.start_rps / search_cost.START
        assert 8 <= ratio <= 60


def test_the_truth_of_a_simulated_server_is_that_of_theory():
    server = servers.KNOWN["M/M/1, 5 ms, p95 <= 50 ms"]
    assert servers.limit_rps(server) == pytest.approx(MM1_LIMIT_RPS, rel=0.02)


def test_on_a_host_that_wanders_the_truth_is_the_limit_at_the_median_speed():
    slow = Host(deviation=1e-9, burst_every_s=1e-9)  # bursts without a pause: always slower
    server = replace(servers.KNOWN["M/D/1, 5 ms, p95 <= 50 ms"], host=slow)
    factors = slow.factors(np.random.default_rng(0), 100.0)
    _, found = servers.search(server, 170.0, seed=1)
    assert np.median(factors) > 1 and found.truth_rps < 170
    steady = replace(server, host=Host(deviation=0.1, memory_s=5))
    assert servers.search(steady, 170.0, seed=1)[1].truth_rps == pytest.approx(170, rel=0.1)


def test_a_host_wanders_as_far_and_as_long_as_it_is_said():
    log_work = np.log(Host(deviation=0.08, memory_s=20).factors(np.random.default_rng(1), 20_000))
    later = int(20 / STEP_S)
    assert np.std(log_work) == pytest.approx(0.08, rel=0.1)
    assert np.corrcoef(log_work[later:], log_work[:-later])[0, 1] == pytest.approx(0.37, abs=0.1)


def test_sends_are_later_for_each_request_in_flight():
    server = SimulatedServer([deterministic(1.0)], np.random.default_rng(2), lag_per_request_s=0.01)
    with server.offer([2.0], 5.0) as load:
        (requests,) = load.until(5.0).requests
    lag_ms = requests.send_lag_ms(load.until(5.0).now_ns)
    busy = np.floor(lag_ms / 10 + 0.5)
    assert lag_ms == pytest.approx(10 * busy) and busy[0] == 0 and np.ptp(busy) > 2


# --- the effect of each rule


def test_a_rule_is_off_only_where_it_is_said():
    with ablation.off({"tenant_limit.SETTLES": 7.0}):
        assert tenant_limit.SETTLES == 7.0
    assert tenant_limit.SETTLES < 1


def test_every_rule_stands_beside_all_rules():
    found = servers.Found(100, 100, 90, 95, 105, 60)
    other = servers.Found(100, 110, 90, 101, 121, 60)
    rules = (ablation.ALL, *ablation.RULES, *ablation.COURSE)
    of_search = dict.fromkeys(rules, other) | {ablation.ALL: found}
    rows = list(ablation.rows_of("servers", [[of_search] * 2, [of_search]]))
    assert len(rows) == 3 * (len(rules) - 1) + len(ablation.COURSE)
    widths = [(row.ours, row.peer) for row in rows if "width" in row.metric]
    assert widths == [pytest.approx((0.2, 0.1))] * (len(rules) - 1)
    assert {(row.ours, row.peer) for row in rows if "share" in row.metric} == {(0.0, 1.0)}


def test_without_the_work_of_requests_the_interval_of_m_d_1_is_wide():
    found = ablation.by_rule(servers.KNOWN["M/D/1, 5 ms, p95 <= 50 ms"], 169.9, seed=3)
    assert set(found) == {ablation.ALL, *ablation.RULES, *ablation.COURSE}
    widths = {rule: each.high_rps - each.low_rps for rule, each in found.items()}
    assert widths["service times are observed"] > 1.2 * widths[ablation.ALL]


# --- the distance to the limit


def test_the_certified_rate_is_the_highest_of_the_ladder_that_a_server_keeps_up_with():
    rng = np.random.default_rng(1)
    server = SimulatedServer([deterministic(0.01)], rng, arrivals=Arrivals("constant"))
    certified_rps = limit.certified_rps(server, 130, 0.01, lambda text: None)
    assert certified_rps == pytest.approx(0.75 * 130)


def test_the_model_is_written_where_triton_looks_for_them(tmp_path):
    name = write_sleep(tmp_path, Sleep(5, stall_every=500, stall_ms=300))
    config = text_format.Parse((tmp_path / name / "config.pbtxt").read_text(), ModelConfig())
    assert (config.name, config.max_batch_size, config.instance_group[0].count) == (name, 1, 1)
    assert (KNOWN_BACKENDS / config.backend / "model.py").is_file()
    assert (tmp_path / name / "1").is_dir()
    assert config.parameters["stall_ms"].string_value == "300"


@pytest.mark.parametrize(("other_works", "rounds"), [(0, 100), (1, 125)])
def test_a_request_takes_more_rounds_while_the_other_model_works(
    other_works, rounds, tmp_path, monkeypatch
):
    """A request takes 100 rounds, and 125 while the other model works.

    During a request, the model sets its own byte of the shared file to 1.
    """
    for name in ("triton_python_backend_utils", "perseus_tensors"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    backend = runpy.run_path(str(KNOWN_BACKENDS / "spin" / "model.py"))
    busy, own = tmp_path / "busy", []
    busy.write_bytes(bytes([0, other_works]))
    name = write_spin(tmp_path, "first", Spin(100, 1.25, str(busy), 0))
    config = text_format.Parse((tmp_path / name / "config.pbtxt").read_text(), ModelConfig())
    model = backend["TritonPythonModel"]()
    model.initialize(
        {"model_config": json_format.MessageToJson(config, preserving_proto_field_name=True)}
    )

    def sha256(block):
        own.append(busy.read_bytes()[0])
        return MagicMock()

    monkeypatch.setattr(hashlib, "sha256", sha256)
    model.serve()
    assert own == [1] * rounds and busy.read_bytes()[0] == 0


# --- rows and the page


def test_every_search_has_its_requests_seconds_and_error_beside_every_peer():
    rows = list(search_cost.rows_of(search_cost.CASES[2], seeds=2))
    assert len(rows) == 2 * 4 * 3
    assert {row.metric for row in rows if row.goal} == {
        search_cost.REQUESTS,
        search_cost.SECONDS,
        search_cost.ERROR,
    }
    assert all(math.isfinite(row.ours) and math.isfinite(row.peer) for row in rows)


@pytest.mark.parametrize(
    ("goal", "text", "met"),
    [
        (Goal(">=", 2), ">= 2", "true"),
        (Goal("<=", 1.9), "<= 1.9", "false"),
        (Goal("<", 30, "ours"), "ours < 30", "false"),
        (Goal("<=", 30, "ours"), "ours <= 30", "true"),
        (Goal(">=", 2, condition="luck", holds=False), ">= 2 with luck", "false"),
    ],
)
def test_a_goal_bounds_the_ratio_or_our_figure(goal, text, met):
    row = Row("client", "case", "metric", 30.0, 15.0, "peer", goal)
    assert row.cells()[-3:] == ("2", text, met)


def test_a_figure_that_does_not_exist_is_empty_and_meets_no_goal():
    row = Row("client", "case", "metric", math.nan, 15.0, "peer", Goal("<=", 2))
    assert row.cells() == ("client", "case", "metric", "", "15", "peer", "", "<= 2", "false")


def test_figures_have_four_digits_and_no_exponent():
    cells = Row("b", "c", "m", 145623.4, 0.000123456, "p").cells()
    assert cells[3:5] == ("145600", "0.0001235")


def test_a_table_is_read_as_it_was_written(tmp_path):
    row = Row("client", 'a, "b"', "metric", 1.5, 3.0, "peer", Goal("<=", 0.5))
    write_rows(tmp_path / "client.csv", [row])
    (cells,) = read_cells(tmp_path / "client.csv")
    assert tuple(cells) == COLUMNS and tuple(cells.values()) == row.cells()


CASES = {
    "search": {f"{case.name}, {of}" for case in search_cost.CASES for of in ("quick", "standard")},
    "coverage": {*coverage.CASES, coverage.DRAWN},
    "sharing": {
        f"{pair}, {host}" for pair in sharing.PAIRS for host in ("on an idle host", *coverage.HOSTS)
    },
    "ablation": {
        f"{rule}; {group}"
        for rule in (*ablation.RULES, *ablation.COURSE)
        for group in ablation.GROUPS
    },
    "compare": set(compare.CASES),
}


@pytest.mark.parametrize("table", CASES)
def test_the_code_has_each_case_of_a_table(table):
    assert {row["case"] for row in read_cells(RESULTS / f"{table}.csv")} <= CASES[table]


def page_of(folder, *rows):
    write_rows(folder / "client.csv", rows)
    (folder / "client.json").write_text('{"date": "2026-11-26", "cpu": "AMD EPYC"}')
    return page(folder)


def test_the_page_has_missed_goals_first_and_no_row_without_a_goal(tmp_path):
    text = page_of(
        tmp_path,
        Row("client", "one", "requests/s (higher is better)", 3.0, 1.0, "peer", Goal(">=", 2)),
        Row("client", "two", "requests/s (higher is better)", 1.0, 1.0, "peer", Goal(">=", 2)),
        Row("client", "three", "requests/s (higher is better)", 9.0, 1.0, "peer"),
    )
    missed = "| two | requests/s | 1 | 1, peer | 1 | ratio >= 2 | **no** |\n"
    assert text.endswith(f"{missed}| one | requests/s | 3 | 1, peer | 3 | ratio >= 2 | yes |\n")
    told = "the ratio of *requests/s* is 1 (goal: >= 2) in the case *two*"
    assert f"| 1 of 2 | {told} | 2026-11-26 | AMD EPYC |" in text
    assert "- **Answer:** 1 of 2 goals are met." in text
    assert "[`client.csv`](../../benchmarks/results/client.csv) (3 rows)" in text
    assert "| three |" not in text


def test_many_goals_have_the_range_of_each_metric(tmp_path):
    goal = Goal("<=", 11, "ours")
    lags = [Row("client", f"case {i}", "lag", float(i), goal=goal) for i in range(2, 13)]
    alone = Row("client", "alone", "share", 0.5, goal=Goal("<=", 1, "ours"))
    text = page_of(tmp_path, *lags, alone)
    assert "| case 12 | lag | 12 | ours <= 11 | **no** |\n| alone | share | 0.5 |" in text
    assert "| 11 cases: lowest, median, highest | lag | 2, 7, 12 | ours <= 11 | 10 of 11 |" in text
    assert "| case 2 |" not in text


def test_the_page_is_made_from_the_tables():
    assert page(RESULTS) == PAGE.read_text()
