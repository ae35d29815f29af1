"""Tests of closed loops at several concurrencies."""

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from measure_tasks import measure_task, tenant

from perseus.measurement.closed_loop import Throughput
from perseus.measurement.experiments import concurrency
from perseus.serving.failures import ServerError
from perseus.study.experiments.concurrency import Run
from perseus.traffic.client import ClientError


@pytest.mark.parametrize("error", [ServerError("it has ended"), ClientError("it has ended")])
def test_a_server_or_client_that_ends_keeps_the_loops_before(monkeypatch, error):
    seen = []

    @contextmanager
    def served(cell):
        yield SimpleNamespace(record={}, under_load=lambda: nullcontext(None))

    def closed_loop(task, system, phase, level):
        if len(seen) == 2:
            raise error
        seen.append(level)
        return SimpleNamespace(elapsed_s=1.0), [Throughput(level, "a", 9.0, 8.0, 10.0)]

    monkeypatch.setattr(concurrency, "server_under_test", served)
    monkeypatch.setattr(concurrency, "closed_loop", closed_loop)
    monkeypatch.setattr(concurrency, "keep", lambda cell, system, window, left_s: None)
    task = measure_task(tenant("a"), run=Run(concurrencies=(1, 4, 16)))
    found = concurrency.measure(SimpleNamespace(task=task, own_stream=np.random.default_rng(3)))
    assert (found.record["outcome"], found.record["reason"]) == ("failed", "it has ended")
    assert [each["concurrency"] for each in found.record["levels"]] == sorted(seen)
    assert len(seen) == 2
