"""Choose the Snakemake threads and resources of the jobs that measure cells, so that jobs that
would disturb each other never run at the same time."""

from __future__ import annotations

from typing import Final

from perseus.study.cells import Cell, Study

ALL_THREADS: Final = 100_000
"""More threads than any machine has cores. Snakemake lowers this number to the cores in its option
`--cores`, so the job gets all these cores."""

LOCAL: Final = "local_server"


def threads(of: Cell) -> int:
    """Return the number of threads of the job that measures a cell. If the server runs on this
    host, the job gets all threads. For a remote server, the job gets the cores of the client."""
    remote = of.scenario.server.remote
    return remote.client_cores if remote else ALL_THREADS


def slots(study: Study) -> list[str]:
    """Return the names of the Snakemake resources for hosts: one for this host, and one for each
    remote host. Only one job at a time may use each of these resources."""
    remotes = [server.remote for server in study.servers.values() if server.remote]
    return [LOCAL, *sorted({remote.slot for remote in remotes})]


def slot(of: Cell) -> str:
    remote = of.scenario.server.remote
    return remote.slot if remote else LOCAL
