"""Choose the Snakemake threads and resources of each cell, so that cells do not disturb each
other's measurement."""

from __future__ import annotations

from typing import Final

from perseus.study.cells import Cell, Study

ALL_THREADS: Final = 100_000
"""More threads than any machine has cores. Snakemake lowers this number to the number in its option
`--cores`."""

LOCAL: Final = "local_server"


def threads(of: Cell) -> int:
    """Return the number of threads of a cell's job: all threads for a server on this host, the
    client cores for a remote server."""
    remote = of.scenario.server.remote
    return remote.client_cores if remote else ALL_THREADS


def slots(study: Study) -> list[str]:
    """Return the names of the Snakemake resources that only one cell at a time may use: one for
    this host, and one for each remote host."""
    remotes = [server.remote for server in study.servers.values() if server.remote]
    return [LOCAL, *sorted({remote.slot for remote in remotes})]


def slot(of: Cell) -> str:
    remote = of.scenario.server.remote
    return remote.slot if remote else LOCAL
