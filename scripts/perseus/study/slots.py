"""Choose the Snakemake threads and resources of a cell, so that measurements do not disturb each
other."""

from __future__ import annotations

from typing import Final

from perseus.study.cells import Cell, Study

ALL_THREADS: Final = 100_000
"""More threads than any machine has cores. Snakemake lowers the number to its option `--cores`."""

LOCAL: Final = "local_server"


def threads(of: Cell) -> int:
    """Return the threads of the job of a cell: all threads if the server is on this host, or the
    number of client cores if the server is remote."""
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
