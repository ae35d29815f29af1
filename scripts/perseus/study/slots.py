"""Choose the Snakemake threads and resources of a cell, so that measurements do not disturb each
other."""

from __future__ import annotations

from typing import Final

from perseus.study.cells import Cell, Study

ALL_THREADS: Final = 100_000
"""A number of cores above that of any machine; Snakemake lowers the number to the cores of the
run."""

LOCAL: Final = "local_server"


def threads(of: Cell) -> int:
    """Return the threads of the job of a cell: all cores for a server on this host, or the client
    cores for a remote server."""
    remote = of.scenario.server.remote
    return remote.client_cores if remote else ALL_THREADS


def slots(study: Study) -> list[str]:
    """Return the Snakemake resources that only one measurement at a time may use: this host, and
    each remote host."""
    remotes = [server.remote for server in study.servers.values() if server.remote]
    return [LOCAL, *sorted({remote.slot for remote in remotes})]


def slot(of: Cell) -> str:
    remote = of.scenario.server.remote
    return remote.slot if remote else LOCAL
