"""Tests of the client ceiling. The end-to-end tests measure the ceiling on a real server."""

from __future__ import annotations

import json
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from google.protobuf import text_format
from measure_tasks import client
from tritonclient.grpc import model_config_pb2 as pb

from perseus.host import orphans
from perseus.measurement import ceiling
from perseus.measurement.ceiling import (
    ATTEMPTS,
    OPEN_S,
    SHARES,
    Closed,
    Open,
    Shape,
    describe,
    disturbed_loads,
    highest_valid,
    judged,
    strictest,
)
from perseus.models.tensors import ModelTensors, TensorSpec
from perseus.peak.system import Observation
from perseus.peak.verdict import ON_BUSY_HOST, ON_IDLE_HOST, Verdict
from perseus.results.client_ceiling import Ceiling
from perseus.study.sla import Sla
from perseus.study.tasks.ceiling import CeilingTask, RequestOfModel
from perseus.study.tasks.measure import MeasuredArrivals
from perseus.study.traces import TraceSource
from perseus.traffic.arrivals import Arrivals
from perseus.traffic.requests import Requests, Status

TASK = CeilingTask(
    server="cpu1",
    cores=1,
    client_cores=None,
    arrivals=MeasuredArrivals(process="poisson", cv=1.0),
    trace=None,
    client=client(),
    seed=0,
    requests=(
        RequestOfModel(model="resnet18", images=1, sla_ms=50),
        RequestOfModel(model="resnet34", images=1, sla_ms=500),
    ),
)
STRICT, WIDE = Sla(latency_ms=50), Sla(latency_ms=500)


def of_image(size):
    return Shape((TensorSpec("input", "FP32", (3, size, size)),), 1)


@pytest.mark.parametrize("has_batches, first", [(True, (2,)), (False, ())])
def test_requests_have_the_shapes_that_the_null_model_states(tmp_path, has_batches, first):
    """Triton needs a dimension besides the batch, also for an input that is one number."""
    inputs = TensorSpec("image", "FP32", (3, 8, 8)), TensorSpec("threshold", "FP32", ())
    tensors = ModelTensors(inputs, (), has_batches)
    check = tmp_path / "resnet18" / "check.json"
    check.parent.mkdir()
    check.write_text(json.dumps(tensors.plain()))
    request = RequestOfModel(model="resnet18", images=2, sla_ms=50)
    (shape,) = ceiling.shapes_of(TASK.model_copy(update={"requests": (request,)}), [check])
    ceiling.write_null_model(tmp_path, shape)
    text = (tmp_path / "null" / "config.pbtxt").read_text()
    stated = text_format.Parse(text, pb.ModelConfig())
    assert stated.max_batch_size == (2 if has_batches else 0)
    assert {name: of.shape for name, of in shape.batch.items()} == {
        each.name: (*first, *each.dims) for each in stated.input
    }
    assert shape.sizes == "3x8x8 + 1"


def client_up_to(
    limit_rps: float,
    invalid: frozenset[int] = frozenset(),
    completed: float = 1.0,
    beyond: Verdict = Verdict.INVALID,
):
    """Return windows of a client that keeps its schedule up to a rate.

    The windows with the numbers in `invalid` are invalid.
    """
    asked: list[float] = []

    def window(rate_rps: float) -> SimpleNamespace:
        asked.append(rate_rps)
        good = rate_rps <= limit_rps and len(asked) - 1 not in invalid
        return SimpleNamespace(
            offered_rps=rate_rps,
            disturbed=False,
            verdict=Verdict.PASS if good else beyond,
            completed_ratio=completed,
            send_lag_p99_ms=0.5 if good else 3.0,
            client_cpu=0.5,
            reason="" if good else "send lag p99 3.0 ms > 1.0 ms",
        )

    return window


def tried_with(client, tolerance=ON_IDLE_HOST, sla=STRICT) -> list[Open]:
    """Return the rates that the search tries, starting at 2000 requests/s."""
    return highest_valid(2000, lambda rate_rps: judged(client(rate_rps), sla, tolerance))


def ceiling_rps(tried) -> float:
    assert [each.rate_rps for each in tried] == sorted((t.rate_rps for t in tried), reverse=True)
    return next(each.rate_rps for each in tried if each.valid)


@pytest.mark.parametrize("steps", range(len(SHARES)))
def test_the_ceiling_is_the_highest_valid_rate_of_the_ladder(steps):
    rate_rps = 2000 * SHARES[steps]
    tried = tried_with(client_up_to(1.001 * rate_rps))
    assert ceiling_rps(tried) == pytest.approx(rate_rps)
    assert f"ceiling {rate_rps:.0f} requests/s" in describe(tried)
    above = {each.rate_rps for each in tried if not each.valid}
    assert not above or min(above) == pytest.approx(rate_rps / 0.85)
    assert len(tried) <= ATTEMPTS * 5, "a bisection of 18 shares takes at most five steps"


def test_a_client_that_is_faster_than_the_path_has_the_first_rate_as_its_ceiling():
    tried = tried_with(client_up_to(1e6))
    assert all(each.valid for each in tried) and len(tried) == 5
    assert ceiling_rps(tried) == pytest.approx(0.9 * 2000)


@pytest.mark.parametrize("hiccup", range(6))
def test_one_hiccup_does_not_lower_the_ceiling(hiccup):
    steady = tried_with(client_up_to(1000))
    assert len(steady) == 6
    shaken = tried_with(client_up_to(1000, invalid=frozenset({hiccup})))
    assert ceiling_rps(shaken) == ceiling_rps(steady)
    assert len(shaken) <= len(steady) + 1


@pytest.mark.parametrize(
    "client",
    [
        client_up_to(0),
        client_up_to(9000, completed=0.5),
        client_up_to(0, beyond=Verdict.FAIL),  # the server is overloaded, and the client is late
    ],
)
def test_a_client_that_cannot_send_or_a_server_that_does_not_answer_has_no_ceiling(client):
    tried = tried_with(client)
    assert not any(each.valid for each in tried)
    assert tried[-1].rate_rps == 2000 * SHARES[-1]
    assert len(tried) % ATTEMPTS == 0 and len(tried) <= 10
    assert describe(tried).startswith("no window is valid")


def windows(*rates_rps: float, disturbed: bool = True) -> list[SimpleNamespace]:
    reason = "other processes used 34% of the server's cores"
    return [
        SimpleNamespace(offered_rps=rate, disturbed=disturbed, reason=reason) for rate in rates_rps
    ]


def loops(other_cpu_share: float) -> list[Closed]:
    return [Closed(1, 900.0, 300.0, 0.02), Closed(4, 1000.0, 300.0, other_cpu_share)]


def test_what_others_disturbed_is_said():
    assert "used 45% of the cores in a closed loop" in disturbed_loads(loops(0.45), [])
    lost = disturbed_loads(loops(0.1), windows(900, 900))
    assert lost == "900 requests/s: other processes used 34% of the server's cores"
    assert disturbed_loads(loops(0.1), windows(900) + windows(900, disturbed=False)) == ""


def test_a_closed_loop_that_others_disturbed_is_tried_again(monkeypatch):
    busy = iter([0.0, 0.6, 0.6, 0.7])
    monkeypatch.setattr(ceiling, "read_cpu", lambda cores, root: (tuple(cores), root))
    monkeypatch.setattr(ceiling, "other_cpu_share", lambda before, after: next(busy))
    monkeypatch.setattr(ceiling, "closed_loop", lambda client, n: Closed(n, 900.0, 300.0))
    bench = ceiling._Bench(None, None, STRICT, TASK, ([1], [0]), 1, 0)
    assert bench._closed_loop(None, 4).other_cpu_share == 0.0
    assert bench._closed_loop(None, 4).other_cpu_share == 0.6
    assert next(busy) == 0.7


def test_a_ceiling_has_its_cores_for_itself(tmp_path, monkeypatch):
    taken: list[str] = []

    @contextmanager
    def exclusive(names, owner, say):
        taken.extend(names)
        yield
        pytest.fail("nothing is measured here")

    monkeypatch.setattr(ceiling, "exclusive", exclusive)
    monkeypatch.setattr(ceiling, "split_cores", lambda count: ([1], [0]))
    monkeypatch.setattr(ceiling, "core_locks", lambda cpus: {f"core-{cpu}" for cpu in cpus})
    monkeypatch.setattr(ceiling.os, "sched_setaffinity", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        ceiling.measure(TASK, {}, None, tmp_path / "c.json", tmp_path / "log", print)
    assert sorted(taken) == ["core-0", "core-1"]


def test_a_ceiling_that_others_disturbed_is_looked_for_once_more_with_more_tolerance(
    tmp_path, monkeypatch
):
    asked = []

    def run(bench, process, tolerance, say):
        asked.append(tolerance)
        return [], [], "other processes used 34% of the server's cores" if len(asked) < 3 else ""

    monkeypatch.setattr(ceiling._Bench, "run", run)
    monkeypatch.setattr(ceiling.IdleHostWaiter, "wait_until_idle", lambda *arguments: True)
    monkeypatch.setattr(ceiling, "exclusive", lambda *arguments: nullcontext())
    served = []
    monkeypatch.setattr(
        ceiling, "embedded_triton", lambda folder, *more: nullcontext(served.append(folder))
    )
    monkeypatch.setattr(ceiling, "split_cores", lambda count: ([1], [0]))
    monkeypatch.setattr(ceiling.os, "sched_setaffinity", lambda *_: None)
    shapes = {of_image(224): ["resnet18"], of_image(64): ["resnet34"]}
    ceiling.measure(TASK, shapes, None, tmp_path / "ceiling.json", tmp_path / "log", print)
    assert asked == [ON_IDLE_HOST, ON_BUSY_HOST, ON_IDLE_HOST]
    found = Ceiling.read(tmp_path / "ceiling.json").shapes
    assert [bool(shape.disturbed) for shape in found] == [True, False]
    assert [shape.longest_lag_ms for shape in found] == [10, 10]  # 20 % of 50 ms, 2 % of 500 ms
    # Perseus finds the null models of a killed job by their names.
    monkeypatch.setattr(orphans, "is_gone", lambda owner: True)
    names = sorted(folder.name for folder in served)
    assert len(names) == 2 and orphans.names_of_dead_owners(names) == names


def test_late_sends_that_are_put_up_with_do_not_change_a_ceiling():
    slow = client_up_to(1000, beyond=Verdict.PASS)  # at higher rates, the client sends 3 ms late
    assert ceiling_rps(tried_with(slow)) < 1000
    assert ceiling_rps(tried_with(slow, ON_BUSY_HOST)) == pytest.approx(0.9 * 2000)


def test_how_late_sends_may_be_follows_from_the_sla_of_the_models_that_are_sent_so():
    slow = client_up_to(1000, beyond=Verdict.PASS)  # at higher rates, the client sends 3 ms late
    assert ceiling_rps(tried_with(slow, sla=WIDE)) == pytest.approx(0.9 * 2000)
    assert strictest(TASK, ["resnet34"]) == WIDE
    assert strictest(TASK, ["resnet18", "resnet34"]) == STRICT


def test_a_busy_host_that_delays_sends_is_told_even_if_the_latencies_keep_the_sla():
    """A ceiling needs punctual sends, so no latency makes up for late ones."""
    start_ns, count = 10**9, round(500 * OPEN_S)
    intended_ns = start_ns + np.arange(count) * round(OPEN_S * 1e9 / count)
    sent_ns, done_ns = intended_ns + 30 * 10**6, intended_ns + 31 * 10**6
    requests = Requests(intended_ns, sent_ns, done_ns, np.full(count, Status.OK, np.uint8))
    seen = Observation(start_ns, OPEN_S, (requests,), (0.05,), other_cpu_share=0.3)
    load = SimpleNamespace(until=lambda elapsed_s: seen)
    system = SimpleNamespace(offer=lambda rates_rps, duration_s: nullcontext(load))
    window = ceiling.open_loop(system, count / OPEN_S, STRICT, ON_BUSY_HOST)
    assert window.sla_percentile_ms < STRICT.latency_ms
    reason = judged(window, STRICT, ON_BUSY_HOST).reason
    assert reason.startswith("send lag p99 30.000 ms > 10.000 ms")
    assert disturbed_loads(loops(0.1), [window]) == f"500 requests/s: {reason}"


@pytest.mark.parametrize("process", ["poisson", "constant", "gamma", "trace"])
def test_a_ceiling_has_the_arrivals_of_the_study(tmp_path, monkeypatch, process):
    trace = tmp_path / "trace.csv"
    trace.write_text("0\n1\n3\n")
    offered: list[Arrivals] = []
    for name in ("route_to", "Client", "RequestsWriter"):
        monkeypatch.setattr(ceiling, name, lambda *arguments, **named: nullcontext())
    monkeypatch.setattr(
        ceiling,
        "LiveSystem",
        lambda server, clients, arrivals, *more, **named: offered.append(arrivals),
    )
    monkeypatch.setattr(ceiling, "closed_loop", lambda client, n: Closed(n, 900.0, 300.0))
    monkeypatch.setattr(ceiling, "other_cpu_share", lambda before, after: 0.0)
    window = client_up_to(1000)
    monkeypatch.setattr(ceiling, "open_loop", lambda system, rate, sla, tolerance: window(rate))
    monkeypatch.setattr(ceiling, "exclusive", lambda *arguments: nullcontext())
    monkeypatch.setattr(ceiling, "embedded_triton", lambda *arguments: nullcontext())
    monkeypatch.setattr(ceiling, "split_cores", lambda count: ([1], [0]))
    monkeypatch.setattr(ceiling.os, "sched_setaffinity", lambda *_: None)
    arrivals = MeasuredArrivals(process=process, cv=3.0)
    source = TraceSource(file="trace.csv")
    task = TASK.model_copy(update={"arrivals": arrivals, "trace": source})
    path, shapes = tmp_path / "ceiling.json", {of_image(224): ["resnet18"]}
    used = trace if process == "trace" else None
    ceiling.measure(task, shapes, used, path, tmp_path / "log", print)
    assert offered == [Arrivals(process, 3.0, (1.0, 2.0) if used else ())]
    assert Ceiling.read(path).arrivals == arrivals
