"""Tests of replays: equal arrivals together and alone, counted windows, and early ends."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from measure_tasks import client, measure_task, tenant

from benchmarks.simulation import SimulatedLoad
from perseus.measurement.cell import BlockedError
from perseus.measurement.experiments import replay
from perseus.measurement.experiments.replay import DRAIN_S, measure
from perseus.measurement.schedules import near_its_mean_s, schedules
from perseus.peak.durations import PATIENCE_S, grace_s, loop_s
from perseus.peak.lindley import departures_s
from perseus.serving.failures import ServerError
from perseus.study.experiments.replay import Bursts, Run, Trace
from perseus.study.sla import Sla
from perseus.study.traces import TraceSource
from perseus.traffic.arrivals import stream
from perseus.traffic.client import ClientError
from perseus.traffic.mmpp import Mmpp

BURSTS = Bursts(burst_factor=8, burst_s=2, burst_share=0.1)
RUN = Run(
    name="replay-mmpp", process="mmpp", duration_s=60.0, rates_rps=(20.0, 10.0), bursts=BURSTS
)
WORK_S = (0.01, 0.03)
SLA = Sla(percentile=95, latency_ms=200)


class OneWorker:
    """A server that serves one request after another. A request of tenant i takes WORK_S[i].

    `lags_s` has the send lag of each window. `other_load` has the share of the cores that other
    processes use in each window; in windows without an entry, the share is 0. The server dies in
    the window with number `dies`. `others_leave` says whether the other processes end when the
    search waits for them.
    """

    death: Exception = ServerError("the server ended during the measurement")

    def __init__(self, lags_s=(), other_load=(), dies=None, others_leave=False):
        self.lags_s, self.other_load, self.dies = lags_s, other_load, dies
        self.others_leave, self.waited_for = others_leave, []
        self.offered, self.ended, self.looks, self.starts = [], [], [], 0

    def wait_until_idle(self, other_load):
        self.waited_for.append(other_load)
        return self.others_leave

    @contextmanager
    def offer_at(self, times_s):
        number = len(self.offered)
        self.offered.append([each.tolist() for each in times_s])
        if number == self.dies:
            raise self.death
        lag_s = ([*self.lags_s] + [0.0] * (number + 1))[number]
        owner = np.concatenate([np.full(len(each), i) for i, each in enumerate(times_s)])
        arrival_s = np.concatenate(times_s)
        order, done_s = np.argsort(arrival_s), np.empty(len(arrival_s))
        done_s[order] = departures_s(arrival_s[order] + lag_s, np.take(WORK_S, owner[order]))
        parts = [done_s[owner == i] for i in range(len(times_s))]
        lags = [np.full(len(each), lag_s) for each in times_s]
        load = SimulatedLoad(10.0 + 1000.0 * number, times_s, parts, parts, lags)
        other_load = ([*self.other_load] + [0.0] * (number + 1))[number]
        yield Looked(load, self.looks, other_load)
        self.ended.append(SimpleNamespace(number=number + 1))  # number 0 is the warm-up


class Looked:
    """A window that records its readings and has no queue times."""

    def __init__(self, load, looks, other_load):
        self.load, self.looks, self.other_load = load, looks, other_load

    def until(self, elapsed_s):
        self.looks.append(elapsed_s)
        seen = self.load.until(elapsed_s)
        return type(seen)(
            seen.start_ns, seen.elapsed_s, seen.requests, seen.client_cpu, self.other_load
        )


@pytest.fixture
def measured(monkeypatch):
    """Return a function that measures a task on a server and returns the record."""

    def found(system, *tenants, dedicated=(), **changes):
        kept, messages = [], []

        @contextmanager
        def server_under_test(cell):
            system.starts += 1

            @contextmanager
            def under_load():
                yield system

            yield SimpleNamespace(record={"startup_s": 1.0}, under_load=under_load)

        monkeypatch.setattr(replay, "server_under_test", server_under_test)
        window = SimpleNamespace(phase="warm_up")
        monkeypatch.setattr(replay, "closed_loop", lambda *arguments: (window, []))
        monkeypatch.setattr(replay, "keep", lambda *arguments: kept.append(arguments[2:]))
        blocked = changes.pop("blocked", "")
        alone = SimpleNamespace(rps=dict(dedicated), why_blocked=lambda needed: blocked)
        monkeypatch.setattr(replay, "DedicatedPeaks", SimpleNamespace(read=lambda records: alone))
        tenants = tenants or (tenant("a", sla=SLA), tenant("b", sla=SLA))
        task = measure_task(*tenants, **{"run": RUN, **changes})
        cell = SimpleNamespace(
            task=task,
            inputs=SimpleNamespace(dedicated_records=[], files=[]),
            client_cores=[0],
            stream=lambda number: stream(task.seed, task.repeat, number),
            own_stream=stream(task.seed, task.repeat, len(tenants)),
            say=messages.append,
        )
        findings = measure(cell)
        system.kept = kept
        return findings.record | {"watched": findings.watched_window}

    return found


def by_phase(record):
    return {(each["phase"], each["tenant"]): each for each in record["offered"]}


def test_every_tenant_gets_the_same_arrivals_beside_the_others_and_alone(measured):
    system = OneWorker()
    record = measured(system)
    assert (record["outcome"], record["reason"], record["startup_s"]) == ("ok", "", 1.0)
    found = by_phase(record)
    assert set(found) == {("shared", "a"), ("shared", "b"), ("alone", "a"), ("alone", "b")}
    together = next(each for each in system.offered if all(each))
    alone = [each for each in system.offered if not all(each)]
    assert {(bool(a), bool(b)) for a, b in alone} == {(True, False), (False, True)}
    for each in alone:
        assert all(times in (mine, []) for times, mine in zip(each, together, strict=True))
    for name, rate in (("a", 20.0), ("b", 10.0)):
        shared, by_itself = found["shared", name], found["alone", name]
        assert shared["requests_each_s"] == by_itself["requests_each_s"]
        assert sum(shared["requests_each_s"]) == len(together["ab".index(name)])
        assert shared["rate_rps"] == by_itself["rate_rps"] == rate
        assert shared["attained"] < by_itself["attained"]
        assert 0 < len(shared["bursts"]) <= len(by_itself["bursts"])  # some bursts merge


def test_the_load_is_bursty_and_what_it_does_is_that_of_the_queue(measured):
    """The expected latencies follow from Lindley's recursion over the arrivals of both tenants."""
    system = OneWorker()
    found = by_phase(measured(system))
    a, b = next(each for each in system.offered if all(each))
    owner = np.repeat([0, 1], [len(a), len(b)])
    arrival_s = np.concatenate([a, b])
    order = np.argsort(arrival_s)
    done_s = np.empty(len(arrival_s))
    done_s[order] = departures_s(arrival_s[order], np.take(WORK_S, owner[order]))
    within = 1000 * (done_s - arrival_s) <= SLA.latency_ms
    for i, name in enumerate("ab"):
        mine = found["shared", name]
        assert mine["attained"] == pytest.approx(within[owner == i].mean())
        assert sum(mine["within_each_s"]) == within[owner == i].sum()
        assert mine["verdict"] == "sla_missed" and "at most 200 ms" in mine["reason"]
        assert mine["attained_low"] < mine["attained"] < mine["attained_high"]
    assert np.var(found["shared", "a"]["requests_each_s"]) > 3 * 20
    assert found["alone", "a"]["worst_minute"]["start_s"] == 0
    assert max(each["recovery_s"] for each in found["shared", "a"]["bursts"]) > 1


def test_windows_last_until_all_is_answered_or_no_longer_waited_for(measured):
    system = OneWorker()
    # more than the server can serve
    measured(system, run=RUN.model_copy(update={"rates_rps": (20.0, 100.0)}))
    looks = system.looks
    assert 60 + grace_s([SLA]) in looks
    assert max(looks) == pytest.approx(60 + grace_s([SLA]) + DRAIN_S)
    quiet = OneWorker()
    measured(quiet, run=RUN.model_copy(update={"rates_rps": (1.0, 1.0)}))
    assert set(quiet.looks) == {60 + grace_s([SLA])}


def test_phases_are_numbered_as_their_windows_and_come_in_random_order(measured):
    orders, watched = set(), []
    for repeat in range(1, 9):
        record = measured(OneWorker(), repeat=repeat)
        order = sorted({(each["window"], each["phase"]) for each in record["offered"]})
        assert [number for number, _ in order] == [1, 2, 3]
        orders.add(tuple(phase for _, phase in order))
        watched.append(record["watched"] == next(n for n, phase in order if phase == "shared"))
    assert len(orders) > 1 and all(watched)


def test_a_tenant_by_itself_has_one_phase(measured):
    run = RUN.model_copy(update={"rates_rps": (10.0,)})
    record = measured(OneWorker(), tenant("a", sla=SLA), run=run)
    assert [(each["phase"], each["tenant"]) for each in record["offered"]] == [("alone", "a")]


def test_a_window_that_other_processes_disturb_is_tried_again_with_the_same_arrivals(measured):
    system = OneWorker(other_load=(0.3, 0.2))
    record = measured(system)
    assert record["outcome"] == "ok" and len(system.offered) == 5
    assert system.offered[0] == system.offered[1] == system.offered[2]
    assert min(each["window"] for each in record["offered"]) == 3
    assert [left for _, left in system.kept] == pytest.approx(
        [3 * 60.4, *[2 * 60.4] * 3, 60.4, 0.0]
    )


def test_where_there_is_no_quiet_what_keeps_its_sla_counts_and_nothing_else_does(measured):
    quiet = RUN.model_copy(update={"rates_rps": (1.0, 1.0)})
    system = OneWorker(other_load=[0.3] * 9)
    record = measured(system, run=quiet)
    assert record["outcome"] == "ok" and len(system.offered) == 9
    assert {each["verdict"] for each in record["offered"]} == {"ok"}
    record = measured(OneWorker(other_load=[0.3] * 9))
    assert record["outcome"] == "disturbed" and "while other processes" in record["reason"]


def test_a_phase_that_is_always_invalid_leaves_the_others(measured):
    system = OneWorker(other_load=(0.6, 0.6, 0.6))
    record = measured(system)
    assert record["outcome"] == "disturbed" and "60% of the server's cores" in record["reason"]
    disturbed = [each for each in record["offered"] if each["verdict"] == "disturbed"]
    assert len({each["phase"] for each in disturbed}) == 1
    assert len(system.offered) == 5 and len(record["offered"]) == 4
    assert system.waited_for == [0.5]


def test_a_phase_is_offered_once_more_when_others_have_left(measured):
    system = OneWorker(other_load=(0.6, 0.6, 0.6), others_leave=True)
    record = measured(system)
    assert record["outcome"] == "ok" and len(system.offered) == 6
    assert system.waited_for == [0.5]


def test_a_client_that_is_late_is_not_the_servers_fault(measured):
    system = OneWorker(lags_s=[0.15] * 9)
    record = measured(system, client=client("http"))
    assert record["outcome"] == "client_limited"
    assert "send lag p99" in record["reason"]
    lags = [each["fidelity"] for each in record["offered"]]
    assert all(each["lag_p50_ms"] == pytest.approx(150) for each in lags)
    assert all(each["punctual"] == 0 for each in lags)


@pytest.mark.parametrize("death", [OneWorker.death, ClientError("the client of a died")])
def test_a_server_or_client_that_dies_keeps_the_phases_before_it(measured, death):
    system = OneWorker(dies=1)
    system.death = death
    record = measured(system)
    assert (record["outcome"], record["reason"]) == ("failed", str(death))
    assert len({each["window"] for each in record["offered"]}) == 1


def test_shares_of_a_peak_that_was_not_found_are_blocked(measured):
    run = RUN.model_copy(update={"rates_rps": (), "percents_of_peak": (30,)})
    system = OneWorker()
    with pytest.raises(BlockedError, match=r"^not found: b\.peak\.r1$"):
        measured(system, run=run, dedicated={"a": 50.0}, blocked="not found: b.peak.r1")
    assert (system.starts, system.offered) == (0, [])


def drawn(run, files=(), dedicated=(), seed=0):
    task = measure_task(tenant("a"), tenant("b"), run=run)
    cell = SimpleNamespace(
        task=task,
        inputs=SimpleNamespace(files=files),
        stream=lambda number: stream(seed, task.repeat, number),
    )
    return schedules(cell, run, dict(dedicated))


def test_rates_are_as_stated_or_shares_of_the_dedicated_peaks():
    gamma = Run(name="replay-gamma", process="gamma", duration_s=2000.0, cv=4.0)
    stated = gamma.model_copy(update={"rates_rps": (20.0, 5.0)})
    shares = gamma.model_copy(update={"percents_of_peak": (10, 50)})
    for run in (stated, shares):
        found = drawn(run, dedicated={"a": 200.0, "b": 10.0})
        assert [each.rate_rps for each in found] == [20.0, 5.0]
        means = [len(each.times_s) / 2000 for each in found]
        assert means == pytest.approx([20.0, 5.0], rel=0.05)
    one = gamma.model_copy(update={"percents_of_peak": (10,)})
    assert [each.rate_rps for each in drawn(one, dedicated={"a": 200.0, "b": 10.0})] == [20.0, 1.0]


def test_arrivals_are_drawn_again_the_same_and_differ_between_tenants():
    first, second = drawn(RUN.model_copy(update={"rates_rps": (20.0,)}))
    again, _ = drawn(RUN.model_copy(update={"rates_rps": (20.0,)}))
    other, _ = drawn(RUN.model_copy(update={"rates_rps": (20.0,)}), seed=1)
    assert first.times_s.tolist() == again.times_s.tolist()
    assert first.times_s.tolist() != other.times_s.tolist() != second.times_s.tolist()


def test_what_is_drawn_has_the_mean_rate_that_was_asked_for():
    """Each window has the mean rate, although most plain draws have a much higher or lower rate."""
    process, draws = Mmpp(**BURSTS.model_dump()), np.random.default_rng(1)
    by_itself = [len(process.times_s(20.0, 60.0, draws)) for _ in range(50)]
    near = [len(near_its_mean_s(process, 20.0, 60.0, draws)) for _ in range(50)]
    assert np.std(by_itself) > 0.2 * 1200 and np.ptp(near) <= 0.1 * 1200
    assert np.mean(near) == pytest.approx(1200, rel=0.02)


def test_where_no_draw_is_near_the_mean_the_nearest_is_taken():
    draws = iter([np.zeros(n) for n in (0, 30, 9, 12, 20)] * 40)
    process = SimpleNamespace(times_s=lambda *arguments: next(draws))
    assert len(near_its_mean_s(process, 1.0, 10.0, np.random.default_rng(1))) == 9


def test_each_tenant_replays_its_trace_from_where_it_should(tmp_path):
    for name, first in (("x.csv", 0), ("y.csv", 1000)):
        (tmp_path / name).write_text("".join(f"{first + 0.25 * i}\n" for i in range(400)))
    trace = Trace(
        sources=(TraceSource(file="x.csv"), TraceSource(file="y.csv")),
        begins_s=(0.0, 50.1),
        time_scale=0.5,
    )
    run = Run(name="replay-trace", process="trace", duration_s=20.0, trace=trace)
    a, b = drawn(run, [tmp_path / "x.csv", tmp_path / "y.csv"])
    assert a.times_s == pytest.approx(0.125 * np.arange(160))
    assert b.times_s == pytest.approx(0.075 + 0.125 * np.arange(160))
    assert (a.rate_rps, b.rate_rps) == (8.0, 8.0)
    half = run.model_copy(update={"rates_rps": (4.0,)})
    thinned, _ = drawn(half, [tmp_path / "x.csv", tmp_path / "y.csv"])
    assert thinned.rate_rps == 4.0 and len(thinned.times_s) == pytest.approx(80, abs=25)
    assert np.isin(thinned.times_s, a.times_s).all()


def test_one_file_of_both_tenants_is_read_by_what_each_selects(tmp_path):
    path = tmp_path / "burst.csv"
    rows = "".join(f"{i},{'GPT-4' if i % 3 else 'ChatGPT'}\n" for i in range(300))
    path.write_text(f"Timestamp,Model\n{rows}")
    trace = Trace(
        sources=tuple(
            TraceSource(file="burst.csv", where={"Model": name}) for name in ("ChatGPT", "GPT-4")
        ),
        begins_s=(0.0,),
        time_scale=1.0,
    )
    run = Run(name="replay-trace", process="trace", duration_s=300.0, trace=trace)
    a, b = drawn(run, [path])
    assert (len(a.times_s), len(b.times_s)) == (100, 200)
    assert sorted(np.concatenate([a.times_s, b.times_s]).astype(int)) == list(range(300))


def test_what_a_replay_takes_is_known_beforehand():
    task = measure_task(tenant("a", sla=SLA), tenant("b", sla=SLA), run=RUN)
    about_s, most_s = replay.load_s(task)
    assert about_s == pytest.approx(loop_s(task.search, task.slas) + 3 * 60.4)
    assert most_s == pytest.approx(loop_s(task.search, task.slas) + 12 * 80.4 + PATIENCE_S)
