"""Read processes, memory, cores and network counters of a Linux host from /proc.

Perseus calls these functions during measurements, so the functions must use little CPU time. They
read a process tree in a fraction of the time that psutil needs.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil

_PROC = Path("/proc")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Process(NamedTuple):
    """Values of one process from /proc/<pid>/stat. One tick is 1 / TICKS_PER_S seconds.

    `parent` is the process id of the parent process. `cpu_ticks` is the CPU time of the process
    without its children. `ended_ticks` is the CPU time of its ended children, and of the
    descendants of these children. The kernel adds the CPU time of a child to `ended_ticks` when the
    process calls wait(2) for the child. `start_ticks` is the time from boot to the start of the
    process. `rss_pages` is the resident memory in pages.
    """

    parent: int
    cpu_ticks: int
    ended_ticks: int
    start_ticks: int
    rss_pages: int


def process_table() -> dict[int, Process]:
    table = {}
    for name in os.listdir(_PROC):  # noqa: PTH208, twice as fast as Path.iterdir
        if name.isdigit() and (process := _read_process(int(name))) is not None:
            table[int(name)] = process
    return table


def _read_process(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123, as above
            stat = file.read()
    except OSError:  # the process has ended
        return None
    # The second field of proc(5) is the name of the process in parentheses. The name may contain
    # any character, so split the text behind the last ")". `fields` begins with the fourth field.
    state, *fields = stat.rpartition(b")")[2].split()
    if state in (b"Z", b"X"):
        return None
    return Process(
        parent=int(fields[0]),
        cpu_ticks=int(fields[10]) + int(fields[11]),
        ended_ticks=int(fields[12]) + int(fields[13]),
        start_ticks=int(fields[18]),
        rss_pages=int(fields[20]),
    )


def start_ticks(pid: int) -> int | None:
    """Return the time from boot to the start of a process, in ticks.

    No two processes have the same start time and the same process id. The result is None if the
    process has ended, or if /proc hides the process.
    """
    process = _read_process(pid)
    return None if process is None else process.start_ticks


def tree(table: Mapping[int, Process], root: int) -> set[int]:
    """Return the process ids of the process `root` and all its descendants.

    The result is empty if `root` is not in the process table.
    """
    children = defaultdict(list)
    for pid, process in table.items():
        children[process.parent].append(pid)
    found, left = set(), [root] if root in table else []
    while left:
        pid = left.pop()
        found.add(pid)
        left += children[pid]
    return found


def open_files(pids: Iterable[int]) -> int | None:
    """Return the total number of open file descriptors of the processes `pids`.

    The result is None if a process belongs to another user.
    """
    try:
        return sum(map(_open_files, pids))
    except PermissionError:
        return None


def _open_files(pid: int) -> int:
    try:
        return len(os.listdir(_PROC / str(pid) / "fd"))  # noqa: PTH208, as above
    except (FileNotFoundError, ProcessLookupError):  # the process has ended
        return 0


class Resources(NamedTuple):
    """Resident memory and number of open file descriptors of a group of processes together."""

    memory_bytes: int
    open_files: int | None


def resources(table: Mapping[int, Process], pids: Iterable[int]) -> Resources:
    """Return the resident memory and the number of open files of the processes `pids` together."""
    return Resources(sum(table[pid].rss_pages for pid in pids) * PAGE_BYTES, open_files(pids))


def core_ticks() -> dict[int, tuple[int, int]]:
    """Return (busy ticks, total ticks) since boot for each core.

    The time in which a core waits for a disk counts as idle.
    """
    ticks = {}
    for line in (_PROC / "stat").read_text().splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu":
            user, nice, system, idle, iowait, irq, softirq, steal = map(int, fields[:8])
            busy = user + nice + system + irq + softirq + steal
            ticks[int(name[3:])] = (busy, busy + idle + iowait)
    return ticks


def busy_shares(
    before: Mapping[int, tuple[int, int]],
    after: Mapping[int, tuple[int, int]],
    cores: Sequence[int],
) -> list[float]:
    """Return for each core the share (0..1) of the time in which the core was busy.

    The share refers to the time between two readings. `before` and `after` are results of
    `core_ticks`. The function leaves out a core that is missing in one of the readings.
    """
    shares = []
    for core in cores:
        if core in before and core in after:
            busy, total = (a - b for a, b in zip(after[core], before[core], strict=True))
            if total > 0:
                shares.append(min(1.0, max(0.0, busy / total)))
    return shares


@dataclass(frozen=True)
class CpuReading:
    """CPU times at one moment, in ticks.

    `busy` and `total` are the busy time and the total time since boot, summed over the cores of a
    server. `used` is the CPU time of the server and its descendants. `others` contains the CPU time
    of every other process, by process id.
    """

    busy: int
    total: int
    used: int
    others: Mapping[int, int]


def read_cpu(cores: Sequence[int], root: int | None) -> CpuReading:
    """Read the CPU time of these cores, of a server, and of all other processes.

    `root` is the process id of the server; None for a server on another host. If `root` is None,
    all times in the result are 0, and `others` is empty.
    """
    if root is None:
        return CpuReading(0, 0, 0, {})
    ticks, table = core_ticks(), process_table()
    busy, total = (sum(ticks[core][i] for core in cores if core in ticks) for i in (0, 1))
    ours = tree(table, root)
    return CpuReading(
        busy,
        total,
        sum(table[pid].cpu_ticks + table[pid].ended_ticks for pid in ours),
        {pid: process.cpu_ticks for pid, process in table.items() if pid not in ours},
    )


def other_cpu_share(before: CpuReading, after: CpuReading) -> float:
    """Return the share (0..1) of the cores' time that other processes than the server used.

    The share refers to the time between two readings. It includes the time in which other virtual
    machines used the cores.
    """
    busy, total = after.busy - before.busy, after.total - before.total
    # `used` may decrease: after the end of a descendant, its CPU time is missing until its parent
    # has called wait(2).
    used = max(0, after.used - before.used)
    return max(0.0, (busy - used) / total) if total > 0 else 0.0


def most_at_work(before: CpuReading, after: CpuReading, cores: Collection[int]) -> str:
    """Return the name of the process outside the server that used the most CPU time.

    The function considers only processes that may run on these cores. The name is, for example,
    "make (process 7)". The name is empty if no visible process used more than a tenth of a core
    between the two readings.
    """
    worked = {pid: ticks - before.others.get(pid, 0) for pid, ticks in after.others.items()}
    least = 0.1 * (after.total - before.total) / max(len(cores), 1)
    for pid in sorted(worked, key=lambda each: -worked[each]):
        if worked[pid] <= least:
            return ""
        try:
            if not os.sched_getaffinity(pid).isdisjoint(cores):
                name = (_PROC / str(pid) / "comm").read_text(errors="replace").strip()
                return f"{name} (process {pid})"
        except OSError:  # the process has ended
            continue
    return ""


def network_bytes(loopback: bool) -> tuple[int, int]:
    """Return the number of bytes received and the number of bytes sent since boot.

    If `loopback` is true, the numbers are those of the loopback interface. If `loopback` is false,
    the numbers are those of all other interfaces together.
    """
    counters = [
        counter
        for name, counter in psutil.net_io_counters(pernic=True).items()
        if (name == "lo") == loopback
    ]
    return sum(each.bytes_recv for each in counters), sum(each.bytes_sent for each in counters)
