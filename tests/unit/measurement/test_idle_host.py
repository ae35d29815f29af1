"""Tests of waiting until other processes leave a host idle."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from perseus.host.procfs import CpuReading
from perseus.measurement import idle_host
from perseus.measurement.idle_host import LOOK_S, IdleHostWaiter
from perseus.peak.durations import PATIENCE_S


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a fake host.

    In each interval between readings, other processes use the next share in `busy` of the core.
    After the end of the list, other processes use the last share.
    """
    host = SimpleNamespace(busy=[0.0], slept_s=0.0, messages=[])
    looks = itertools.count()

    def read(cores: list[int], root: int) -> CpuReading:
        number = next(looks)
        past = [host.busy[min(i, len(host.busy) - 1)] for i in range((number + 1) // 2)]
        total = 1000 * ((number + 1) // 2)
        return CpuReading(round(1000 * sum(past)), total, 0, {})

    def sleep(seconds: float) -> None:
        host.slept_s += seconds

    monkeypatch.setattr(idle_host, "read_cpu", read)
    # Threads of other tests call `time.sleep`, so the test does not replace `time.sleep` itself.
    monkeypatch.setattr(idle_host, "time", SimpleNamespace(sleep=sleep, monotonic_ns=lambda: 0))
    monkeypatch.setattr(idle_host, "most_at_work", lambda before, after, cores: host.who)
    host.who = "make (process 7)"
    return host


def waiter(host: Any, on_gpus: Any = None) -> IdleHostWaiter:
    return IdleHostWaiter([1], 42, host.messages.append, on_gpus)


def test_nobody_is_waited_for_on_a_quiet_host(host: Any) -> None:
    assert waiter(host).wait_until_idle(0.5)
    assert host.slept_s == LOOK_S and host.messages == []


def test_others_are_waited_for_and_named_once(host: Any) -> None:
    host.busy = [0.8, 0.7, 0.6, 0.4]
    assert waiter(host).wait_until_idle(0.5)
    assert host.slept_s == 4 * LOOK_S
    assert host.messages == [
        "other processes used 80% of the server's cores, among them make (process 7): waiting"
        " until this load ends, at most 115 s"
    ]


def test_patience_ends_for_all_calls_together(host: Any) -> None:
    host.busy, host.who = [0.8] * 4 + [0.0] + [0.9], ""
    beside_one_server = waiter(host)
    assert beside_one_server.wait_until_idle(0.5) and not beside_one_server.wait_until_idle(0.5)
    assert host.slept_s == PATIENCE_S
    assert len(host.messages) == 2 and "among" not in host.messages[0]
    assert not beside_one_server.wait_until_idle(0.5) and host.slept_s == PATIENCE_S
    assert not waiter(host).wait_until_idle(0.5) and host.slept_s == 2 * PATIENCE_S


def test_others_on_the_gpu_are_waited_for_too(host: Any) -> None:
    shares = iter([0.9, None])
    assert waiter(host, SimpleNamespace(share=lambda start_ns: next(shares))).wait_until_idle(0.5)
    assert host.slept_s == 2 * LOOK_S and "90% of the server's GPU:" in host.messages[0]
