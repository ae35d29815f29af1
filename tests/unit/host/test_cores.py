"""Tests of the CPUs that a server and its client get, on several kinds of machines."""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path

import pytest

from perseus.host import machine as machine_facts
from perseus.host.cores import (
    TooFewCoresError,
    claimed_cores,
    core_locks,
    split_client_cores,
    split_cores,
)
from perseus.host.exclusive import exclusive
from perseus.host.topology import Topology, read_topology


def machine(folder: Path, siblings: list[str], nodes: list[str]) -> Topology:
    """Return the topology of a machine, from files like those below /sys/devices/system."""
    for cpu, listed in enumerate(siblings):
        path = folder / f"cpu/cpu{cpu}/topology/thread_siblings_list"
        path.parent.mkdir(parents=True)
        path.write_text(f"{listed}\n")
    (folder / "cpu/cpufreq").mkdir(parents=True)
    for node, listed in enumerate(nodes):
        path = folder / f"node/node{node}/cpulist"
        path.parent.mkdir(parents=True)
        path.write_text(f"{listed}\n")
    return read_topology(folder)


@pytest.fixture
def laptop(tmp_path):
    """Return a machine of four cores. CPUs 0 and 4 are the two threads of the first core."""
    return machine(tmp_path / "laptop", ["0,4", "1,5", "2,6", "3,7"] * 2, ["0-7"])


@pytest.fixture
def two_sockets(tmp_path):
    """Return a machine of two nodes of four cores with two threads: 0-3 and 8-11, 4-7 and 12-15."""
    return machine(
        tmp_path / "sockets", [f"{i},{i + 8}" for i in range(8)] * 2, ["0-3,8-11", "4-7,12-15"]
    )


@pytest.fixture
def usable(monkeypatch):
    """Return a function that sets the CPUs that this process may use."""

    def use(*cpus: int) -> None:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(cpus))

    return use


def physical(cpus: list[int], topology: Topology) -> set[tuple[int, ...]]:
    return {topology.core_of(cpu) for cpu in cpus}


def test_what_the_machine_tells_is_read(two_sockets):
    assert two_sockets.tells_siblings
    assert two_sockets.core_of(11) == (3, 11)
    assert [two_sockets.node_of(cpu) for cpu in (0, 7, 11, 12)] == [0, 1, 0, 1]
    assert two_sockets.cores([12, 3, 11, 4]) == [(3, 11), (4, 12)]


def test_a_machine_that_tells_nothing_has_cores_of_one_cpu(tmp_path, usable):
    silent = read_topology(tmp_path / "nothing")
    assert silent == Topology() and not silent.tells_siblings
    usable(0, 1, 2, 3)
    assert split_cores(2, silent) == ([2, 3], [0, 1])
    assert split_client_cores(1, silent) == ([1, 2, 3], [0])


@pytest.mark.parametrize(
    ("count", "server", "client"),
    [
        (1, [3], [0, 1, 2, 4, 5, 6]),  # the other thread of the server's core stays idle
        (2, [3, 7], [0, 1, 2, 4, 5, 6]),
        (3, [2, 3, 7], [0, 1, 4, 5]),
        (6, [1, 2, 3, 5, 6, 7], [0, 4]),
    ],
)
def test_client_and_server_share_no_physical_core(laptop, usable, count, server, client):
    usable(*range(8))
    assert split_cores(count, laptop) == (server, client)
    assert not physical(server, laptop) & physical(client, laptop)


def test_only_a_machine_without_another_core_shares_one(laptop, usable):
    usable(*range(8))
    assert split_cores(7, laptop) == ([1, 2, 3, 4, 5, 6, 7], [0])
    usable(2, 6)
    assert split_cores(1, laptop) == ([6], [2])
    with pytest.raises(TooFewCoresError):
        split_cores(2, laptop)


@pytest.mark.parametrize("count", range(1, 9))
def test_a_server_that_fits_into_a_node_stays_there_and_so_does_its_client(
    two_sockets, usable, count
):
    usable(*range(16))
    server, client = split_cores(count, two_sockets)
    assert {two_sockets.node_of(cpu) for cpu in server} == {1} and len(server) == count
    # the server is on node 1, so the client gets node 0, which has more free CPUs
    assert client == [0, 1, 2, 3, 8, 9, 10, 11]


def test_a_server_larger_than_a_node_leaves_the_client_what_there_is(two_sockets, usable):
    usable(*range(16))
    server, client = split_cores(10, two_sockets)
    assert server == [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] and client == [0, 1, 2, 8, 9, 10]


def test_a_server_that_fits_into_another_node_only_goes_there(two_sockets, usable):
    usable(*range(4), 7)
    assert split_cores(2, two_sockets) == ([2, 3], [0, 1])


def test_the_client_has_the_larger_rest_of_a_node(two_sockets, usable):
    usable(3, *range(4, 8))
    assert split_cores(1, two_sockets) == ([7], [4, 5, 6])


def test_a_server_leaves_its_client_the_core_that_it_can_do_without(usable):
    mixed = Topology({0: (0, 1), 1: (0, 1), 2: (2,)})
    usable(0, 1, 2)
    assert split_cores(2, mixed) == ([0, 1], [2])
    assert split_client_cores(2, mixed) == ([2], [0, 1])
    assert split_cores(1, mixed) == ([2], [0, 1])


@pytest.mark.parametrize("seed", range(100))
def test_no_core_is_shared_where_another_choice_shares_none(usable, seed):
    """If a division of the CPUs exists that splits no core, server and client share no core.

    The test tries all divisions of the CPUs.
    """
    rng = random.Random(seed)
    cpus = rng.sample(range(16), 16)
    cores = [tuple(sorted(cpus.pop() for _ in range(rng.choice([1, 2, 2, 4])))) for _ in range(4)]
    nodes = {cpu: node for core in cores for node in [rng.randrange(2)] for cpu in core}
    topology = Topology({cpu: core for core in cores for cpu in core}, nodes)
    mine = rng.sample(sorted(nodes), rng.randint(2, len(nodes)))
    usable(*mine)
    count = rng.randint(1, len(mine) - 1)
    for split in (split_cores(count, topology), split_client_cores(count, topology)[::-1]):
        asked, others = map(set, split)
        assert len(asked) == count and others and not asked & others and asked | others <= set(mine)
        sizes = [len(core) for core in topology.cores(mine)]
        choices = [some for n in range(1, len(sizes)) for some in itertools.combinations(sizes, n)]
        can_be_apart = any(sum(choice) >= count for choice in choices)
        assert can_be_apart is physical(asked, topology).isdisjoint(physical(others, topology))


def test_the_split_is_in_the_record(laptop, two_sockets, tmp_path, usable):
    usable(*range(16))
    assert machine_facts.describe(*split_cores(3, two_sockets), two_sockets)["topology"] == {
        "tells_siblings": True,
        "shared_by_server_and_client": [],
        "server_nodes": [1],
        "client_nodes": [0],
    }
    usable(2, 6)
    shared = machine_facts.describe(*split_cores(1, laptop), laptop)["topology"]
    assert shared["shared_by_server_and_client"] == [2, 6]
    silent = machine_facts.describe([1], [0], read_topology(tmp_path / "nothing"))["topology"]
    assert not silent["tells_siblings"] and not silent["shared_by_server_and_client"]


def test_the_client_of_a_remote_server_shares_no_core_with_the_null_model(laptop, usable):
    usable(*range(8))
    assert split_client_cores(1, laptop) == ([1, 2, 3, 5, 6, 7], [0])


def test_two_measurements_share_no_physical_core_either(laptop, two_sockets):
    assert core_locks([3, 7], laptop) == core_locks([7], laptop) == {"perseus-core-3"}
    assert core_locks([0, 9], two_sockets) == {"perseus-core-0", "perseus-core-1"}


def test_a_claim_is_of_physical_cores_as_long_as_there_are(tmp_path, laptop, usable, monkeypatch):
    monkeypatch.setattr("perseus.host.cores.read_topology", lambda: laptop)
    usable(*range(8))
    with claimed_cores(2, "a", print, tmp_path) as first:
        assert first == [0, 1]
        with claimed_cores(2, "b", print, tmp_path) as second:
            assert second == [2, 3]
    with claimed_cores(5, "a", print, tmp_path) as cpus:
        assert cpus == [0, 1, 2, 3, 4]
    with pytest.raises(TooFewCoresError), claimed_cores(9, "a", print, tmp_path):
        pytest.fail("there are eight")


def test_a_claim_waits_for_measurements_here_and_says_so(tmp_path, laptop, usable, monkeypatch):
    monkeypatch.setattr("perseus.host.cores.read_topology", lambda: laptop)
    usable(0, 4)
    messages: list[str] = []
    measured = exclusive(["perseus-core-0"], "here", print, tmp_path)
    measured.__enter__()

    def hear(message: str) -> None:
        messages.append(message)
        measured.__exit__(None, None, None)

    with claimed_cores(1, "there", hear, tmp_path) as cpus:
        assert cpus == [0]
    assert messages == ["waiting for client cores that other measurements use"]
