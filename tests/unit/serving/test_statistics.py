"""Tests of the times that Triton reports for a tenant with one or several Triton models."""

from __future__ import annotations

from perseus.serving import statistics
from perseus.serving.running_server import RunningServer
from perseus.serving.statistics import ServerTimes, tenant_times

SERVER = RunningServer("", "", "", None)
TIMES = {
    "a": ServerTimes(10, queue_ns=1, compute_input_ns=20, compute_ns=300, compute_output_ns=4000),
    "a.preprocess": ServerTimes(11, 50, 9, 100, 3000),
    "a.network": ServerTimes(10, 70, 11, 200, 1000, cache_hits=4),
}


def test_requests_queue_for_the_steps_of_an_ensemble_and_its_last_gives_the_output(monkeypatch):
    """For an ensemble, Triton 2.51 reports no queue time, and adds up the output times of all
    steps."""
    monkeypatch.setattr(statistics, "server_times", lambda server, model, timeout_s: TIMES[model])
    found = tenant_times(SERVER, "a", ("a.preprocess", "a.network"))
    assert found == ServerTimes(10, 120, 20, 300, 1000, cache_hits=4)
    assert tenant_times(SERVER, "a", ()) == TIMES["a"]
