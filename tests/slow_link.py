"""A link from this host to a network namespace that delays packets and loses some of them.

If Python runs this module as a program, the program passes packets between two TUN devices until
its input ends. Few kernels of virtual machines have netem, which would do the same.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

HERE, THERE = "198.18.77.1", "198.18.77.2"  # reserved for tests of networks
MAX_S = 120.0
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


@contextmanager
def far_host(delay_ms: int, loss_percent: float) -> Iterator[tuple[str, list[str]]]:
    """Return (address, command prefix) of a network namespace behind a slow link.

    `delay_ms` is the delay of a packet, half of a round trip. If the host has no network namespaces
    or TUN devices, the test is skipped.
    """
    name = f"perseus-{os.getpid()}"
    link = None
    try:
        _ip(f"netns add {name}")
        arguments = [str(delay_ms / 1000), str(loss_percent / 100), name]
        link = subprocess.Popen(
            [sys.executable, __file__, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert link.stdout is not None
        if (text := link.stdout.readline()) != "ready\n":
            pytest.skip(f"no TUN devices: {text}{link.stdout.read()[-500:]}")
        yield THERE, ["ip", "netns", "exec", name]
    finally:
        if link is not None:
            link.communicate("", timeout=10)
        subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def _ip(arguments: str) -> None:
    try:
        done = subprocess.run(["ip", *arguments.split()], capture_output=True, text=True)
    except FileNotFoundError as error:
        pytest.skip(f"no network namespaces: {error}")
    if done.returncode:
        pytest.skip(f"no network namespaces: ip {arguments}: {done.stderr.strip()}")


def _tun(name: str) -> int:
    """Return the file descriptor of a new device, which exists until the descriptor is closed."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    return descriptor


def _connect(namespace: str) -> tuple[int, int]:
    ours, theirs = f"pf{os.getpid()}", f"pt{os.getpid()}"
    ends = _tun(ours), _tun(theirs)
    for command in (
        f"link set {theirs} netns {namespace}",
        f"address add {HERE}/30 dev {ours}",
        f"link set {ours} up",
        f"-n {namespace} address add {THERE}/30 dev {theirs}",
        f"-n {namespace} link set {theirs} up",
        f"-n {namespace} link set lo up",
    ):
        subprocess.run(["ip", *command.split()], check=True)
    return ends


def carry(ends: tuple[int, int], delay_s: float, loss: float) -> None:
    """Pass packets on until standard input ends, at most for MAX_S."""
    chance, waiting = random.Random(1), list[tuple[float, int, int, bytes]]()
    other, count = {ends[0]: ends[1], ends[1]: ends[0]}, 0
    end_s = time.monotonic() + MAX_S
    while (now_s := time.monotonic()) < end_s:
        while waiting and waiting[0][0] <= now_s:
            _, _, end, packet = heapq.heappop(waiting)
            os.write(end, packet)
        wait_s = waiting[0][0] - now_s if waiting else 1.0
        readable, _, _ = select.select([*ends, sys.stdin], [], [], wait_s)
        if sys.stdin in readable:
            return
        for end in readable:
            packet = os.read(end, 2**16)
            if chance.random() >= loss:
                count += 1
                heapq.heappush(waiting, (time.monotonic() + delay_s, count, other[end], packet))


if __name__ == "__main__":
    ends = _connect(sys.argv[3])
    print("ready", flush=True)
    carry(ends, float(sys.argv[1]), float(sys.argv[2]))
