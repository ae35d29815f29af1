"""Tests of energy counters in a folder like /sys/class/powercap."""

from __future__ import annotations

from pathlib import Path

import pytest

from perseus.host import powercap
from perseus.host.powercap import EnergyCounters

LARGEST_UJ = 262_143_328_850
# The folder of a machine with two processors: psys contains both processors, and the first
# processor also has memory-mapped counters.
ZONES = {
    "intel-rapl": None,
    "intel-rapl:0": "package-0",
    "intel-rapl:0:0": "core",
    "intel-rapl:0:1": "dram",
    "intel-rapl:1": "package-1",
    "intel-rapl:1:0": "dram",
    "intel-rapl:2": "psys",
    "intel-rapl-mmio:0": "package-0",
}


@pytest.fixture
def tree(tmp_path):
    for zone, name in ZONES.items():
        (tmp_path / zone).mkdir()
        if name is not None:
            (tmp_path / zone / "name").write_text(f"{name}\n")
            (tmp_path / zone / "energy_uj").write_text("5000000\n")
            (tmp_path / zone / "max_energy_range_uj").write_text(f"{LARGEST_UJ}\n")
    return tmp_path


def add(tree: Path, joules: dict[str, float]) -> None:
    for zone, each in joules.items():
        file = tree / zone / "energy_uj"
        file.write_text(f"{(int(file.read_text()) + round(1e6 * each)) % LARGEST_UJ}\n")


def test_processors_and_their_memory_are_added_and_nothing_is_counted_twice(tree):
    counters = EnergyCounters(tree)
    assert counters.joules() is None  # the first reading is the base
    add(tree, {zone: 1.0 for zone, name in ZONES.items() if name})
    add(tree, {"intel-rapl:1": 40.0})
    assert counters.joules() == pytest.approx(44)
    assert counters.joules() == 0


def test_a_counter_that_begins_again_goes_on(tree):
    (tree / "intel-rapl:0" / "energy_uj").write_text(f"{LARGEST_UJ - 2_000_000}\n")
    counters = EnergyCounters(tree)
    counters.joules()
    add(tree, {"intel-rapl:0": 7.0, "intel-rapl:1": 3.0})
    assert int((tree / "intel-rapl:0" / "energy_uj").read_text()) == 5_000_000
    assert counters.joules() == pytest.approx(10)
    add(tree, {"intel-rapl:0": 1.5})
    assert counters.joules() == pytest.approx(1.5)


def test_a_part_is_never_the_whole(tree):
    counters = EnergyCounters(tree)
    counters.joules()
    hidden = (tree / "intel-rapl:1" / "energy_uj").rename(tree / "hidden")
    add(tree, {"intel-rapl:0": 2.0})
    assert counters.joules() is None and not powercap.is_readable(tree)
    hidden.rename(tree / "intel-rapl:1" / "energy_uj")
    add(tree, {"intel-rapl:1": 3.0})
    assert counters.joules() == pytest.approx(5)  # since the last complete reading


@pytest.mark.parametrize("text", ["", "none\n"])
def test_what_is_no_number_is_no_energy(tree, text):
    (tree / "intel-rapl:0" / "energy_uj").write_text(text)
    assert EnergyCounters(tree).joules() is None and not powercap.is_readable(tree)


def test_a_host_without_counters_tells_nothing(tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        counters = EnergyCounters(folder)
        assert (counters.joules(), counters.joules()) == (None, None)
        assert not powercap.is_readable(folder)
    assert powercap.METRIC in powercap.METRICS
