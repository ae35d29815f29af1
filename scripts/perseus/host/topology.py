"""Read which CPUs of this machine share a physical core or a NUMA node."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

SYSTEM = Path("/sys/devices/system")


@dataclass(frozen=True)
class Topology:
    """The CPUs of the same physical core (siblings) and the NUMA node of each reported CPU, by CPU
    id.

    The siblings of a CPU include the CPU itself.
    """

    siblings: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    nodes: Mapping[int, int] = field(default_factory=dict)

    @property
    def tells_siblings(self) -> bool:
        """Return whether the machine reports that some CPUs share a physical core. A virtual
        machine may hide that CPUs share a core."""
        return any(len(cpus) > 1 for cpus in self.siblings.values())

    def core_of(self, cpu: int) -> tuple[int, ...]:
        """Return all CPUs on the same physical core as `cpu`; only `cpu` itself if its core is
        unknown."""
        return self.siblings.get(cpu, (cpu,))

    def node_of(self, cpu: int) -> int:
        return self.nodes.get(cpu, 0)

    def cores(self, cpus: Collection[int]) -> list[tuple[int, ...]]:
        """Group these CPUs by physical core. Return the cores in the order of their NUMA nodes and
        CPUs."""
        found: dict[tuple[int, ...], list[int]] = {}
        for cpu in sorted(cpus, key=lambda cpu: (self.node_of(cpu), cpu)):
            found.setdefault(self.core_of(cpu), []).append(cpu)
        return [tuple(core) for core in found.values()]


def read_topology(system: Path = SYSTEM) -> Topology:
    """Read the topology of this machine from /sys/devices/system. If the system does not report the
    topology, the result is empty."""
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
    """Yield the CPU ids of a list, for example "0-2,8"."""
    for part in filter(None, path.read_text().strip().split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)
