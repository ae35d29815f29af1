"""What a cell takes of a machine, so that nothing disturbs it: threads and slots of Snakemake's."""

from __future__ import annotations

from typing import Final

from perseus.study.cells import Cell, Study

ALL_THREADS: Final = 100_000
"""More than any machine has: Snakemake lowers it to all the cores that it was given."""

LOCAL: Final = "local_server"


def threads(of: Cell) -> int:
    """All cores for a server on this host; a remote server's client has its own."""
    remote = of.scenario.server.remote
    return remote.client_cores if remote else ALL_THREADS


def slots(study: Study) -> list[str]:
    """What only one measurement at a time may use: this host, and each host of remote servers."""
    remotes = [server.remote for server in study.servers.values() if server.remote]
    return [LOCAL, *sorted({remote.slot for remote in remotes})]


def slot(of: Cell) -> str:
    remote = of.scenario.server.remote
    return remote.slot if remote else LOCAL
