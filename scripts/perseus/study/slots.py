"""Choose the Snakemake threads and resources of the jobs that measure cells, so that Snakemake runs
no two jobs that would disturb each other at the same time."""

from __future__ import annotations

from typing import Final

from perseus.study.cells import Cell, Study

ALL_THREADS: Final = 100_000
"""More threads than any machine has cores: the job gets all cores in Snakemake's option `--cores`,
to which Snakemake lowers this number."""

LOCAL: Final = "local_server"


def threads(of: Cell) -> int:
    """Return the number of threads of the job that measures a cell. If the server runs on this
    host, the job needs all threads; for a remote server, only the cores of the client."""
    remote = of.scenario.server.remote
    return remote.client_cores if remote else ALL_THREADS


def slots(study: Study) -> list[str]:
    """Return the names of the Snakemake resources that only one job at a time may use: one for
    this host, and one for each remote host."""
    remotes = [server.remote for server in study.servers.values() if server.remote]
    return [LOCAL, *sorted({remote.slot for remote in remotes})]


def slot(of: Cell) -> str:
    remote = of.scenario.server.remote
    return remote.slot if remote else LOCAL
