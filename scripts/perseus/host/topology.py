"""Read which CPUs of this machine share a physical core or a NUMA node."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

SYSTEM = Path("/sys/devices/system")


@dataclass(frozen=True)
class Topology:
    """The physical core and the NUMA node of each CPU, as far as the machine reports them.

    For each CPU id, `siblings` has all CPUs of the same physical core, including the CPU itself,
    and `nodes` has the number of the NUMA node.
    """

    siblings: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    nodes: Mapping[int, int] = field(default_factory=dict)

    @property
    def tells_siblings(self) -> bool:
        """Whether the machine reports that some CPUs share a physical core.

        If the value is false, CPUs may nevertheless share a core, because a virtual machine may
        hide the physical cores.
        """
        return any(len(cpus) > 1 for cpus in self.siblings.values())

    def core_of(self, cpu: int) -> tuple[int, ...]:
        """Return all CPUs on the same physical core as `cpu`; only `cpu` if the core is unknown."""
        return self.siblings.get(cpu, (cpu,))

    def node_of(self, cpu: int) -> int:
        return self.nodes.get(cpu, 0)

    def cores(self, cpus: Collection[int]) -> list[tuple[int, ...]]:
        """Group these CPUs by physical core.

        The cores are ordered by NUMA node, and within a node by CPU id.
        """
        found: dict[tuple[int, ...], list[int]] = {}
        for cpu in sorted(cpus, key=lambda cpu: (self.node_of(cpu), cpu)):
            found.setdefault(self.core_of(cpu), []).append(cpu)
        return [tuple(core) for core in found.values()]


def read_topology(system: Path = SYSTEM) -> Topology:
    """Read the topology of this machine from the folder `system`.

    If the system does not report the topology, the result is empty, and each CPU counts as a
    physical core.
    """
    siblings = {
        int(path.parents[1].name.removeprefix("cpu")): tuple(_listed(path))
        for path in system.glob("cpu/cpu[0-9]*/topology/thread_siblings_list")
    }
    nodes = {
        cpu: int(path.parent.name.removeprefix("node"))
        for path in system.glob("node/node[0-9]*/cpulist")
        for cpu in _listed(path)
    }
    return Topology(siblings, nodes)


def _listed(path: Path) -> Iterator[int]:
    """Yield the CPU ids in a file with a list such as "0-2,8"."""
    for part in filter(None, path.read_text().strip().split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)
