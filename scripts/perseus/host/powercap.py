"""The energy of the host's processors and their memory, by the counters that Linux shows of Intel's
RAPL, and of AMD's under the same name, in /sys/class/powercap.

Since Linux 5.10 only root may read them, unless a machine's owner says otherwise; many virtual
machines and containers have none. Nothing is estimated then.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

POWERCAP: Final = Path("/sys/class/powercap")
METRIC: Final = "host_energy_joules"
METRICS: Final = {
    METRIC: "energy of the host's processors and their memory since the previous sample, J, by the"
    " counters of /sys/class/powercap: all that ran on them; none where those cannot be read",
}


class EnergyCounters:
    """The counters of all processors; the first reading is the base of the second."""

    def __init__(self, folder: Path = POWERCAP) -> None:
        self._zones = zones(folder)
        self._before_uj: Sequence[int] | None = None

    def joules(self) -> float | None:
        """The increase since the last reading that had all counters; None without either."""
        now_uj = _energies_uj(self._zones)
        if now_uj is None:
            return None
        before_uj, self._before_uj = self._before_uj, now_uj
        if before_uj is None:
            return None
        return sum(map(_increase_uj, self._zones, before_uj, now_uj)) / 1e6


def is_readable(folder: Path = POWERCAP) -> bool:
    """Whether this host tells us the energy of its processors."""
    return _energies_uj(zones(folder)) is not None


def zones(folder: Path = POWERCAP) -> list[Path]:
    """Packages (intel-rapl:0) and their memory (intel-rapl:0:1), which is no part of them.

    Not cores and graphics, which are, nor the platform (psys), which has the packages in it.
    """
    found = sorted(folder.glob("intel-rapl:*"))
    return [zone for zone in found if _name(zone).startswith(("package-", "dram"))]


def _name(zone: Path) -> str:
    try:
        return (zone / "name").read_text().strip()
    except OSError:
        return ""


def _energies_uj(of: Sequence[Path]) -> list[int] | None:
    """None where there are none, or one cannot be read: a part would pass for the whole."""
    try:
        return [int((zone / "energy_uj").read_text()) for zone in of] or None
    except (OSError, ValueError):
        return None


def _increase_uj(zone: Path, before_uj: int, now_uj: int) -> int:
    """A counter begins again at 0 after its largest value: in minutes or hours, so once at most."""
    if now_uj >= before_uj:
        return now_uj - before_uj
    return now_uj + int((zone / "max_energy_range_uj").read_text()) - before_uj
