"""Tests of the memory limits of containers and pods, in control groups of versions 1 and 2."""

from __future__ import annotations

import pytest

from perseus.host.memory_limit import free_bytes

POD = "/kubepods/pod1/container1"
INSIDE, AROUND = "kubepods/pod1/container1", "kubepods/pod1"


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        (
            "0::/",
            {
                "memory.max": "1000",
                "memory.current": "700",
                "memory.stat": "anon 500\ninactive_file 150\nactive_file 50",
            },
            450,
        ),
        ("0::/", {"memory.max": "1000", "memory.current": "700"}, 300),
        ("0::/", {"memory.max": "max", "memory.current": "700"}, None),
        ("0::/", {}, None),  # the root group of a host has no memory.max
        (
            f"0::{POD}\n",
            {
                f"{INSIDE}/memory.max": "900",
                f"{INSIDE}/memory.current": "100",
                f"{AROUND}/memory.max": "2000",
                f"{AROUND}/memory.current": "1700",
                "kubepods/memory.max": "max",
                "kubepods/memory.current": "5000",
            },
            300,
        ),
        # In a container, the listed path may not exist.
        (f"0::/../..{POD}\n", {"memory.max": "1000", "memory.current": "900"}, 100),
        (
            f"4:cpu:/\n2:memory:{POD}\n0::/\n",
            {
                f"memory{POD}/memory.limit_in_bytes": "1000",
                f"memory{POD}/memory.usage_in_bytes": "700",
                f"memory{POD}/memory.stat": "inactive_file 1\ntotal_inactive_file 150",
                "memory/memory.limit_in_bytes": "9223372036854771712",
                "memory/memory.usage_in_bytes": "700",
            },
            450,
        ),
        ("", {"memory.max": "1000", "memory.current": "700"}, None),
    ],
    ids=[
        *("docker", "no statistics", "no limit", "host", "tightest of those around it", "outside"),
        *("version 1", "no groups"),
    ],
)
def test_the_tightest_limit_counts(tmp_path, own, files, expected):
    for name, text in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    (tmp_path / "self").write_text(own)
    assert free_bytes(tmp_path / "cgroup", tmp_path / "self") == expected
