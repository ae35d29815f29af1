"""If the client of a cell reached its limit before the server did, advise how the client can send
more load."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from perseus.measurement.cell import CellUnderTest, Findings
from perseus.peak.outcome import Outcome
from perseus.study.launchers import LAUNCHERS
from perseus.study.tasks.measure import MeasuredClient, MeasuredServer


def with_advice(found: Findings, cell: CellUnderTest) -> Findings:
    """Return the findings. If the client limited the load, add advice to the key `reason`."""
    if found.outcome is not Outcome.CLIENT_LIMITED:
        return found
    ways = advice_for(cell.task.client, cell.task.server, len(cell.client_cores))
    return replace(found, record={**found.record, "reason": f"{found.record['reason']}; {ways}"})


def advice_for(client: MeasuredClient, server: MeasuredServer, client_cores: int) -> str:
    """Return a text that lists how the client can send more load: by settings, or by more cores.

    The text omits settings that the study already uses.
    """
    return "the client can send more load with: " + ", ".join(_ways(client, server, client_cores))


def _ways(client: MeasuredClient, server: MeasuredServer, client_cores: int) -> Iterator[str]:
    if client.protocol == "http":
        yield "gRPC instead of HTTP (measurement.client.protocol)"
    if not client.shared_memory and LAUNCHERS[server.launcher].shares_memory:
        yield "inputs in shared memory (measurement.client.shared_memory)"
    if client.processes is not None and client.processes < client_cores:
        yield "more processes of the client (measurement.client.processes)"
    if server.remote is not None:
        yield "more cores for the client (remote.client_cores)"
    else:
        yield "more cores for the client (a larger machine)"
