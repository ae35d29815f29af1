"""Start the clients of a cell, which send the requests of each tenant to the server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from perseus.host.gpu import other_gpu_work
from perseus.measurement.cell import CellUnderTest
from perseus.measurement.live_system import LiveSystem
from perseus.measurement.server_life import reporting_end_of_server
from perseus.measurement.tenant_under_test import TenantUnderTest
from perseus.peak.durations import loop_s
from perseus.serving.running_server import RunningServer
from perseus.study.recorded import read_trace
from perseus.study.sla import Sla
from perseus.study.tasks.measure import MeasuredArrivals
from perseus.study.traces import TraceSource
from perseus.traffic.arrivals import Arrivals
from perseus.traffic.client import Client, processes_each
from perseus.traffic.route import Route


@contextmanager
def routes_to(tenants: Sequence[TenantUnderTest]) -> Iterator[dict[str, Route]]:
    """Yield the route of each tenant: the contents of its requests and the server's address."""
    timeout_s = max(5.0, 20 * longest_sla_s([tenant.settings.sla for tenant in tenants]))
    with ExitStack() as stack:
        yield {tenant.name: stack.enter_context(tenant.load_route(timeout_s)) for tenant in tenants}


@contextmanager
def under_load(
    cell: CellUnderTest,
    server: RunningServer,
    tenants: Sequence[TenantUnderTest],
    routes: Mapping[str, Route],
) -> Iterator[LiveSystem]:
    """Start one client per tenant, and yield a system that offers load through these clients.

    Raises ServerError if the server has ended, and ClientError if a client does not start.
    """
    task = cell.task
    processes = processes_each(task.client.processes, cell.client_cores, len(tenants))
    if not task.run.takes_arrivals:
        # A closed loop replaces a request that timed out. The server would work on both requests,
        # and the throughput would be too low.
        least_s = loop_s(task.search, task.slas)
        routes = {
            name: replace(route, timeout_s=max(route.timeout_s, least_s))
            for name, route in routes.items()
        }
    with ExitStack() as stack:
        with reporting_end_of_server(server):
            clients = [
                stack.enter_context(
                    Client(
                        each.name,
                        routes[each.name],
                        cell.client_cores,
                        processes,
                        steps=each.steps,
                    )
                )
                for each in tenants
            ]
        gpus = task.server.gpus
        on_gpus = stack.enter_context(other_gpu_work(gpus, cell.server_cores, server.pid))
        cell.raw.client_realtime = all(client.prompt for client in clients)
        system = LiveSystem(
            server,
            clients,
            arrivals(task.arrivals, task.trace, cell.inputs.trace),
            [cell.stream(i) for i in range(len(clients))],
            cell.raw.requests,
            server_cores=cell.server_cores,
            client_cores=cell.client_cores,
            longest_sla_s=longest_sla_s(task.slas),
            on_gpus=on_gpus,
            say=cell.say,
        )
        try:
            yield system
        finally:
            cell.raw.add_errors(system.errors)


def arrivals(process: MeasuredArrivals, trace: TraceSource | None, file: Path | None) -> Arrivals:
    """Return the arrival process of a study. If the study replays a trace, `file` contains the
    trace.

    Raises OSError if the trace cannot be read, and TraceError if the trace is not valid.
    """
    gaps_s = read_trace(file, trace).recorded.gaps_s() if trace and file else ()
    return Arrivals(**process.model_dump(), gaps_s=gaps_s)


def longest_sla_s(slas: Sequence[Sla]) -> float:
    return max(sla.latency_ms for sla in slas) / 1000
