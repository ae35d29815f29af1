"""Choose the CPUs (logical processors) of a server and of its client on this host.

If the machine has enough physical cores and reports them, server and client never share a physical
core. If possible, all CPUs of the server lie in a single NUMA node, and all CPUs of the client lie
in a single NUMA node. Server and client may use the same NUMA node.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from perseus.host.cpu_quota import read_quota
from perseus.host.exclusive import FOLDER, exclusive_if_free
from perseus.host.topology import Topology, read_topology


class TooFewCoresError(RuntimeError):
    """Error: the host has too few cores for the server, the client or the null model."""


def split_cores(server_cores: int, topology: Topology | None = None) -> tuple[list[int], list[int]]:
    """Return the CPUs of the server and the CPUs of the client; the two lists are disjoint.

    The server gets `server_cores` CPUs with high numbers, because the system runs interrupts and
    other work mostly on CPUs with low numbers. If the server does not need all CPUs of its physical
    cores, the remaining CPUs of these cores stay unused. Server and client share a physical core
    only if the client would otherwise have no CPU. Raises TooFewCoresError if no CPU is left for
    the client.
    """
    topology = topology or read_topology()
    usable = usable_cpus(topology)
    if server_cores >= len(usable):
        raise TooFewCoresError(
            f"the server asks for {server_cores} cores, and the client needs at least one core of"
            f" its own, but this process may use only {len(usable)}{_quota()}: reduce `cores` of"
            " the server, or measure on a larger machine"
        )
    return _split(server_cores, usable[::-1], topology)


def max_server_cores() -> int:
    """Return the number of CPUs for the largest possible server. One CPU remains for the client."""
    return len(usable_cpus(read_topology())) - 1


def usable_cpus(topology: Topology) -> list[int]:
    """Return the CPUs that this process may use, in ascending order.

    If a CPU quota can keep only n CPUs busy all the time, the function returns n CPUs, on different
    physical cores if possible.
    """
    cpus, quota = os.sched_getaffinity(0), read_quota()
    if quota is None or quota.whole_cores >= len(cpus):
        return sorted(cpus)
    cores = topology.cores(cpus)[::-1]
    by_thread = itertools.chain.from_iterable(itertools.zip_longest(*cores))
    return sorted([cpu for cpu in by_thread if cpu is not None][: quota.whole_cores])


def _quota() -> str:
    """Return a note about the CPU quota of this process, for an error message.

    The note is empty if no quota limits the number of CPUs.
    """
    quota = read_quota()
    is_limit = quota is not None and quota.whole_cores < len(os.sched_getaffinity(0))
    return f" (its CPU quota is {quota.cores:g} cores)" if quota and is_limit else ""


def split_client_cores(
    client_cores: int, topology: Topology | None = None
) -> tuple[list[int], list[int]]:
    """Return the CPUs of the null model and the CPUs of the client, for a remote server.

    The null model is a model that does no work. Perseus runs this model on the host of the client,
    to measure the client ceiling. The function follows the rules of `split_cores`, but the client
    gets `client_cores` CPUs, with low numbers. Raises TooFewCoresError if no CPU is left for the
    null model.
    """
    topology = topology or read_topology()
    usable = usable_cpus(topology)
    if client_cores >= len(usable):
        raise TooFewCoresError(
            f"the client asks for {client_cores} cores, and the null model (a model that does no"
            " work, for the client ceiling) needs at least one core of its own, but this process"
            f" may use only {len(usable)}{_quota()}: reduce `remote.client_cores`, or measure on a"
            " larger machine"
        )
    return _split(client_cores, usable, topology)[::-1]


def _split(count: int, usable: Sequence[int], topology: Topology) -> tuple[list[int], list[int]]:
    """Return `count` CPUs from the start of `usable`, and a second list of other CPUs.

    The second list has all remaining CPUs of the NUMA node that has the most remaining CPUs.
    """
    descending = usable[0] > usable[-1]
    cores = topology.cores(usable)[:: -1 if descending else 1]
    nodes = _by_node(cores, topology)
    for pool in (*nodes, cores):
        taken = _first(count, pool)
        if len(taken) == len(cores):
            taken = _without_spare(count, taken)
        left = _by_node([core for core in cores if core not in taken], topology)
        if taken and left:
            # If several NUMA nodes have the largest number of remaining CPUs, choose the last of
            # these nodes, since its cores are farthest from the taken cores.
            rest = max(left[::-1], key=lambda node: sum(map(len, node)))
            return sorted(_cpus(taken)[:count]), sorted(_cpus(rest))
    return sorted(usable[:count]), sorted(usable[count:])


def _by_node(cores: Sequence[tuple[int, ...]], topology: Topology) -> list[list[tuple[int, ...]]]:
    found: dict[int, list[tuple[int, ...]]] = {}
    for core in cores:
        found.setdefault(topology.node_of(core[0]), []).append(core)
    return list(found.values())


def _first(count: int, cores: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the first cores of the list that together have at least `count` CPUs.

    The result is empty if all cores together have fewer CPUs.
    """
    for number in range(1, len(cores) + 1):
        if sum(map(len, cores[:number])) >= count:
            return list(cores[:number])
    return []


def _without_spare(count: int, cores: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Remove the cores that are unnecessary for `count` CPUs, beginning at the end of the list."""
    needed = list(cores)
    for core in reversed(cores):
        if sum(map(len, needed)) - len(core) >= count:
            needed.remove(core)
    return needed


def _cpus(cores: Sequence[tuple[int, ...]]) -> list[int]:
    return [cpu for core in cores for cpu in core]


def core_locks(cpus: Collection[int], topology: Topology | None = None) -> set[str]:
    """Return the names of the locks that reserve these CPUs (see `host.exclusive`).

    There is one lock per physical core.
    """
    topology = topology or read_topology()
    return {f"perseus-core-{min(topology.core_of(cpu))}" for cpu in cpus}


@contextmanager
def claimed_cores(
    count: int, owner: str, say: Callable[[str], None], folder: Path = FOLDER
) -> Iterator[list[int]]:
    """Reserve `count` CPUs for this measurement while the context is open. Yield their numbers.

    If other measurements use too many physical cores, the function waits. If enough physical cores
    are free, no two of the reserved CPUs share a physical core. `owner` is the name of this
    measurement in the messages of waiting measurements. Raises LockError if a lock file is
    unusable, and TooFewCoresError if this process may use fewer than `count` CPUs.
    """
    topology = read_topology()
    usable = usable_cpus(topology)
    if count > len(usable):
        raise TooFewCoresError(
            f"the client asks for {count} cores, but this process may use only"
            f" {len(usable)}{_quota()}: reduce `remote.client_cores`, or measure on a larger"
            " machine"
        )
    cores, waiting = topology.cores(usable), False
    while True:
        with contextlib.ExitStack() as stack:
            claimed: list[tuple[int, ...]] = []
            for core in cores:
                (lock,) = core_locks(core, topology)
                if len(claimed) < count and stack.enter_context(
                    exclusive_if_free(lock, owner, folder)
                ):
                    claimed.append(core)
            firsts, siblings = [core[0] for core in claimed], [core[1:] for core in claimed]
            cpus = [*firsts, *_cpus(siblings)][:count]
            if len(cpus) == count:
                yield sorted(cpus)
                return
        if not waiting:
            say("waiting for client cores that other measurements use")
            waiting = True
        time.sleep(0.2)
