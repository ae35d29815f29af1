"""Tests of server starts: their order, the times from the log, and a start that fails."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from measure_tasks import measure_task, tenant

from perseus.measurement.experiments import startup
from perseus.serving.failures import ServerError
from perseus.study.experiments.startup import Run
from perseus.traffic.client import ClientError
from perseus.traffic.route import RouteError

LOG = """\
W1122 23:59:58.100000 7 pinned_memory_manager.cc:273] "Unable to allocate"
I1122 23:59:59.500000 7 model_lifecycle.cc:472] "loading: a:1"
I1122 23:59:59.600000 7 model_lifecycle.cc:472] "loading: b:1"
I1123 00:00:00.750000 7 model_lifecycle.cc:839] "successfully loaded 'a'"
E1123 00:00:01.000000 7 model_lifecycle.cc:642] "failed to load 'b' version 1: Internal"
I1123 00:00:01.000000 7 model_lifecycle.cc:839] "successfully loaded 'never begun'"
"""


def test_the_log_tells_the_load_of_a_model_also_past_midnight(tmp_path):
    (tmp_path / "server.log").write_text(LOG)
    assert startup.loads_s(tmp_path / "server.log") == {"a": pytest.approx(1.25)}


def test_an_ensemble_is_loaded_when_all_its_models_are(tmp_path):
    line = 'I1122 10:00:0{}.000000 7 model_lifecycle.cc:472] "{}"\n'
    messages = [
        (1, "loading: a.network:1"),
        (2, "loading: a.preprocess:1"),
        (3, "successfully loaded 'a.preprocess'"),
        (6, "successfully loaded 'a.network'"),
        (7, "loading: a:1"),
        (8, "successfully loaded 'a'"),
    ]
    (tmp_path / "server.log").write_text("".join(line.format(*each) for each in messages))
    assert startup.loads_s(tmp_path / "server.log") == {"a": pytest.approx(7)}


def test_a_log_from_elsewhere_tells_nothing(tmp_path):
    (tmp_path / "server.log").write_text("triton 2.51.0 at far:8001\nIts own log is on far.\n")
    assert startup.loads_s(tmp_path / "server.log") == {}


@pytest.fixture
def cell(monkeypatch):
    """Return a cell whose server passes every check. Each test replaces `one_start`."""

    class Checked:
        def __enter__(self):
            return SimpleNamespace(record={"startup_s": 1.0})

        def __exit__(self, *exc):
            return None

    monkeypatch.setattr(startup, "server_under_test", lambda cell: Checked())
    run = Run(starts=2, page_cache=("warm", "cold"))
    return SimpleNamespace(task=measure_task(tenant("a"), run=run), say=lambda text: None)


def started(page_cache):
    return startup.Start(page_cache, 1.0, 1.5, {"a": 0.2}, {"a": 40.0}, {"a": 4.0})


def test_the_states_of_the_page_cache_take_turns(cell, monkeypatch):
    monkeypatch.setattr(startup, "one_start", lambda cell, page_cache: started(page_cache))
    record = startup.measure(cell).record
    assert [start["page_cache"] for start in record["starts"]] == ["warm", "cold"] * 2
    assert (record["outcome"], record["startup_s"]) == ("ok", 1.0)


@pytest.mark.parametrize("failure", [ServerError, ClientError, RouteError])
def test_a_start_that_fails_ends_the_cell_and_keeps_those_before_it(cell, monkeypatch, failure):
    done = []

    def one_start(cell, page_cache):
        if len(done) == 2:
            raise failure("it ended early")
        done.append(page_cache)
        return started(page_cache)

    monkeypatch.setattr(startup, "one_start", one_start)
    record = startup.measure(cell).record
    assert (record["outcome"], record["reason"]) == ("failed", "start 3: it ended early")
    assert len(record["starts"]) == 2


def test_only_a_cold_start_asks_for_an_eviction(monkeypatch, tmp_path):
    asked = []
    (tmp_path / "a/1").mkdir(parents=True)
    (tmp_path / "a/1/model.onnx").write_bytes(b"weights")
    (tmp_path / "a.reference.npz").write_bytes(b"answers")  # a file that no server reads

    def refuse(cell):
        raise ServerError("not here")

    monkeypatch.setattr(startup, "evict", asked.append)
    monkeypatch.setattr(startup, "started", refuse)
    cell = SimpleNamespace(task=None, inputs=SimpleNamespace(repository=tmp_path))
    for page_cache in ("warm", "cold"):
        with pytest.raises(ServerError):
            startup.one_start(cell, page_cache)
    assert asked == [[tmp_path / "a/1/model.onnx"]]
