"""Tests of the costs of a request: bytes, and CPU time of client and server."""

from __future__ import annotations

import numpy as np
import pytest
from measure_tasks import measure_task, tenant

from perseus.measurement import preprocess_cost
from perseus.measurement.cpu_times import cpu_times
from perseus.measurement.preprocess_cost import client_preprocess_ms
from perseus.measurement.tenant_under_test import tenants_on
from perseus.models.pictures import Pictures
from perseus.models.preprocess import Preprocessing
from perseus.models.reference import Reference
from perseus.serving.running_server import RunningServer
from perseus.traffic.requests import Requests, Status
from perseus.traffic.route import INPUT
from perseus.traffic.sender import Result


def result(answered: int, failed: int, cpu_s: float) -> Result:
    times = np.arange(answered + failed)
    status = np.array([Status.OK] * answered + [Status.ERROR] * failed, np.uint8)
    return Result(Requests(times, times, times, status), {}, True, cpu_s)


def test_cpu_time_is_shared_out_among_the_answered_requests():
    busy, failing, idle = cpu_times(3.0, [result(40, 10, 0.2), result(10, 5, 0.1), result(0, 0, 1)])
    assert (busy.client_cpu_ms, busy.server_cpu_ms) == (5.0, 60.0)
    assert (failing.client_cpu_ms, failing.server_cpu_ms) == (10.0, 60.0)
    assert (idle.client_cpu_ms, idle.server_cpu_ms) == (None, 60.0)


def test_of_a_server_elsewhere_or_one_that_answered_nothing_no_cpu_time_is_known():
    (far,) = cpu_times(float("nan"), [result(4, 0, 0.2)])
    (silent,) = cpu_times(3.0, [result(0, 4, 0.2)])
    assert far.client_cpu_ms == 50.0
    assert [far.server_cpu_ms, silent.client_cpu_ms, silent.server_cpu_ms] == [None] * 3


FILES = [np.full(length, length, np.uint8) for length in (5, 9, 2, 4)]


@pytest.fixture
def tenants(tmp_path):
    """Return tenants with preprocessing by client, by server, in batches, and with tensors."""
    images = np.arange(4 * 3 * 2 * 2, dtype=np.float32).reshape(4, 3, 2, 2)
    answers = np.zeros((4, 10), np.float32)
    wanted = Preprocessing(2, 2, (0, 0, 0), (1, 1, 1), "BILINEAR")
    path = tmp_path / "pictures.npz"
    reference = Reference.of_classifier(images, answers)
    np.savez(path, **reference.arrays(), **Pictures(FILES, wanted).arrays())
    reference.write(tmp_path / "reference.npz")
    asked = [
        tenant("a", preprocessing="client"),
        tenant("b", preprocessing="server"),
        tenant("c", preprocessing="server", request_batch_size=2, max_batch_size=2),
        tenant("d"),
    ]
    references = {"a": path, "b": path, "c": path, "d": tmp_path / "reference.npz"}
    return tenants_on(RunningServer("", "", "", None), measure_task(*asked), references)


def test_requests_carry_tensors_or_files(tenants):
    by_client, by_server, in_pairs, plain = tenants
    for each in (by_client, plain):
        assert each.batches([[1]])[0][INPUT].shape == (1, 3, 2, 2)
    assert by_server.batches([[2], [0]])[0][INPUT].tolist() == [[2, 2]]
    assert in_pairs.batches([[0, 2]])[0][INPUT].tolist() == [[5] * 5, [2, 2, 0, 0, 0]]
    sizes = [each.request_bytes for each in tenants]
    assert sizes == [48, (5 + 9 + 2 + 4) / 4, (2 * 9 + 2 * 4) / 2, 48]


def test_what_a_client_pays_is_measured_of_a_whole_request_on_both_sides(tenants, monkeypatch):
    """Each picture takes 2 ms, and one in 40 takes 50 ms."""
    clock_ns, seen = [0], []

    def tensor(self, file):
        seen.append(len(file))
        clock_ns[0] += 50_000_000 if len(seen) % 40 == 0 else 2_000_000

    monkeypatch.setattr(Preprocessing, "tensor", tensor)
    monkeypatch.setattr(preprocess_cost.time, "thread_time_ns", lambda: clock_ns[0])
    assert client_preprocess_ms(tenants) == {"a": 2.0, "b": 2.0, "c": 4.0}
    assert seen[:8] == [5, 9, 2, 4] * 2
