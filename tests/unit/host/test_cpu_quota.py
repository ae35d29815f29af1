"""Tests of the CPU quotas of containers and pods, in control groups of versions 1 and 2."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perseus.host import cores as chosen
from perseus.host import machine
from perseus.host.cores import (
    TooFewCoresError,
    claimed_cores,
    max_server_cores,
    split_client_cores,
    split_cores,
)
from perseus.host.cpu_quota import CpuQuota, Throttling, read_quota
from perseus.host.topology import Topology

POD = "/kubepods/pod1/container1"
EIGHT_THREADS = Topology({cpu: (cpu % 4, cpu % 4 + 4) for cpu in range(8)})


@pytest.fixture
def groups(tmp_path):
    return tmp_path / "cgroup"


def quota_of(groups: Path, own: str, files: dict[str, str]) -> CpuQuota | None:
    """Return the quota of a process whose /proc/self/cgroup contains `own`."""
    for name, text in files.items():
        (groups / name).parent.mkdir(parents=True, exist_ok=True)
        (groups / name).write_text(f"{text}\n")
    listed = groups.parent / "self"
    listed.write_text(own)
    return read_quota(groups, listed)


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        # docker --cpus=2, seen from inside the container
        ("0::/", {"cpu.max": "200000 100000"}, (2.0, "")),
        ("0::/", {"cpu.max": "max 100000"}, None),
        ("0::/", {}, None),  # the root group of a host has no cpu.max
        (
            f"0::{POD}\n",
            {
                "kubepods/pod1/container1/cpu.max": "max 100000",
                "kubepods/pod1/cpu.max": "350000 100000",
                "kubepods/cpu.max": "700000 100000",
            },
            (3.5, "kubepods/pod1"),
        ),
        # In a container, the listed path may not exist. The root folder is then the control group
        # of the process.
        (f"0::/../..{POD}\n", {"cpu.max": "50000 100000"}, (0.5, "")),
        (f"0::{POD}\n", {"cpu.max": "150000 100000"}, (1.5, "")),
        (
            f"4:memory:/\n2:cpu,cpuacct:{POD}\n0::/\n",
            {
                f"cpu{POD}/cpu.cfs_quota_us": "250000",
                f"cpu{POD}/cpu.cfs_period_us": "100000",
                "cpu/cpu.cfs_quota_us": "-1",
                "cpu/cpu.cfs_period_us": "100000",
            },
            (2.5, f"cpu{POD}"),
        ),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ("3:cpuset:/\n", {"cpu/cpu.cfs_quota_us": "1", "cpu/cpu.cfs_period_us": "1"}, None),
        ("0::/", {"cpu.max": "garbage"}, None),
        ("", {"cpu.max": "200000 100000"}, None),
    ],
    ids=[
        *("docker", "no limit", "host", "tightest of those around it", "outside", "other root"),
        *("version 1", "version 1 without", "no cpu controller", "garbage", "no groups"),
    ],
)  # fmt: skip
def test_the_tightest_quota_counts(groups, own, files, expected):
    found = quota_of(groups, own, files)
    assert (found and (found.cores, found.group)) == (
        expected and (expected[0], groups / expected[1])
    )


@pytest.mark.parametrize(
    "stat",
    [
        "usage_usec 9\nnr_periods 120\nnr_throttled 30\nthrottled_usec 5",
        "nr_periods 120\nnr_throttled 30\nthrottled_time 5000",
    ],
)
def test_throttling_is_the_share_of_periods_since_a_reading(groups, stat):
    quota = quota_of(groups, "0::/", {"cpu.max": "200000 100000", "cpu.stat": stat})
    assert quota.throttling() == Throttling(120, 30)
    assert quota.throttling().share_since(Throttling(20, 5)) == 0.25
    assert quota.throttling().share_since(quota.throttling()) == 0
    (groups / "cpu.stat").unlink()
    assert quota.throttling() == Throttling(0, 0)


@pytest.fixture
def with_quota(monkeypatch):
    """Return a function that sets the CPU quota of this process on four cores of two threads."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(chosen, "read_topology", lambda: EIGHT_THREADS)

    def use(cores: float | None) -> None:
        quota = None if cores is None else CpuQuota(cores, Path("/nowhere"))
        for module in (chosen, machine):
            monkeypatch.setattr(module, "read_quota", lambda: quota)

    return use


@pytest.mark.parametrize(
    ("cores", "expected"),
    [
        (2.0, ([3], [2])),  # CPUs of different physical cores
        (3.7, ([3], [1, 2])),
        (5.0, ([3], [0, 1, 2])),  # the other thread of the server's core stays idle
        (8.0, ([3], [0, 1, 2, 4, 5, 6])),
        (64.0, ([3], [0, 1, 2, 4, 5, 6])),
        (None, ([3], [0, 1, 2, 4, 5, 6])),
    ],
)
def test_cores_that_a_quota_cannot_give_are_not_counted(with_quota, cores, expected):
    with_quota(cores)
    assert split_cores(1) == expected
    assert max_server_cores() == min(8, int(cores or 8)) - 1
    assert machine.describe([3], [2])["cpu_quota_cores"] == cores


def test_a_server_that_a_quota_is_too_small_for_is_refused_with_the_quota(with_quota, tmp_path):
    with_quota(2.5)
    text = r"this process may use only 2 \(its CPU quota is 2\.5 cores\)"
    with pytest.raises(TooFewCoresError, match=f"the server asks for 2 cores, and .* {text}"):
        split_cores(2)
    with pytest.raises(TooFewCoresError, match=f"the client asks for 2 cores, and .* {text}"):
        split_client_cores(2)
    with pytest.raises(TooFewCoresError, match=text), claimed_cores(3, "a", print, tmp_path):
        pytest.fail("there are two")
    with_quota(0.5)
    with pytest.raises(TooFewCoresError, match="may use only 1 "):
        split_cores(1)
    with_quota(None)
    with pytest.raises(TooFewCoresError, match="this process may use only 8: reduce"):
        split_cores(8)
