"""Read the energy of the host's processors and their memory.

Linux shows the energy counters (RAPL) of Intel and AMD processors in /sys/class/powercap. Since
Linux 5.10, only root may read the counters by default. Many virtual machines and containers have no
counters. If the counters are not readable, the energy is None, because Perseus never estimates it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

POWERCAP: Final = Path("/sys/class/powercap")
METRIC: Final = "host_energy_joules"
METRICS: Final = {
    METRIC: (
        "energy of the host's processors and their memory since the previous sample, J, read from"
        " the counters in /sys/class/powercap. The energy includes all processes of the host. If"
        " the counters are not readable, there is no value."
    ),
}


class EnergyCounters:
    """The energy counters of all processors of the host, and the values of the last reading."""

    def __init__(self, folder: Path = POWERCAP) -> None:
        self._zones = zones(folder)
        self._before_uj: Sequence[int] | None = None

    def joules(self) -> float | None:
        """Return the energy in J since the previous call, summed over all counters.

        The result of the first call is None. The result is also None if a counter is not readable.
        """
        now_uj = _energies_uj(self._zones)
        if now_uj is None:
            return None
        before_uj, self._before_uj = self._before_uj, now_uj
        if before_uj is None:
            return None
        return sum(map(_increase_uj, self._zones, before_uj, now_uj)) / 1e6


def is_readable(folder: Path = POWERCAP) -> bool:
    """Return whether this user may read the energy counters of this host."""
    return _energies_uj(zones(folder)) is not None


def zones(folder: Path = POWERCAP) -> list[Path]:
    """Return the folders of the energy counters of processor packages and of their memory.

    For example, intel-rapl:0 is a package, and intel-rapl:0:1 may be the memory of this package.
    The function leaves out all other counters, because they would count some energy twice: the
    counters of packages include the counters of cores and graphics, and the counter of the platform
    (psys) includes the packages.
    """
    found = sorted(folder.glob("intel-rapl:*"))
    return [zone for zone in found if _name(zone).startswith(("package-", "dram"))]


def _name(zone: Path) -> str:
    try:
        return (zone / "name").read_text().strip()
    except OSError:
        return ""


def _energies_uj(of: Sequence[Path]) -> list[int] | None:
    """Return the values of all counters in uJ; None without counters.

    The result is also None if a counter is not readable.
    """
    try:
        return [int((zone / "energy_uj").read_text()) for zone in of] or None
    except (OSError, ValueError):
        return None


def _increase_uj(zone: Path, before_uj: int, now_uj: int) -> int:
    """Return the increase of a counter between two readings.

    The result is correct if the counter has overflowed at most once between the readings.
    """
    if now_uj >= before_uj:
        return now_uj - before_uj
    return now_uj + int((zone / "max_energy_range_uj").read_text()) - before_uj
