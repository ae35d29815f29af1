"""Which CPUs of this machine share a physical core, and which a NUMA node, as Linux tells."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

SYSTEM = Path("/sys/devices/system")


@dataclass(frozen=True)
class Topology:
    """CPU ids by CPU id; what the machine does not tell is missing.

    `siblings` are all CPUs of a CPU's physical core, itself among them; `nodes` its NUMA node.
    """

    siblings: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    nodes: Mapping[int, int] = field(default_factory=dict)

    @property
    def tells_siblings(self) -> bool:
        """Whether any CPU is said to share its core. A virtual machine may hide that they do."""
        return any(len(cpus) > 1 for cpus in self.siblings.values())

    def core_of(self, cpu: int) -> tuple[int, ...]:
        """The physical core of a CPU, as its CPUs; a core of its own where nothing is told."""
        return self.siblings.get(cpu, (cpu,))

    def node_of(self, cpu: int) -> int:
        return self.nodes.get(cpu, 0)

    def cores(self, cpus: Collection[int]) -> list[tuple[int, ...]]:
        """These CPUs by physical core, in the order of nodes and of CPUs."""
        found: dict[tuple[int, ...], list[int]] = {}
        for cpu in sorted(cpus, key=lambda cpu: (self.node_of(cpu), cpu)):
            found.setdefault(self.core_of(cpu), []).append(cpu)
        return [tuple(core) for core in found.values()]


def read_topology(system: Path = SYSTEM) -> Topology:
    """What /sys/devices/system says; nothing where it says nothing."""
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
    """CPU ids of a list such as "0-2,8"."""
    for part in filter(None, path.read_text().strip().split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)
