"""Start the server of a cell, check its responses, monitor the server, and offer load.

An experiment that offers load uses `server_under_test`. An experiment that measures the start of
servers uses `started` for each server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final

from perseus.measurement.cell import CellUnderTest
from perseus.measurement.clients import routes_to, under_load
from perseus.measurement.computed_precision import computed_precisions
from perseus.measurement.first_inferences import first_inferences
from perseus.measurement.live_system import LiveSystem
from perseus.measurement.monitor import Monitor
from perseus.measurement.preprocess_cost import client_preprocess_ms
from perseus.measurement.tenant_under_test import TenantUnderTest, tenants_on
from perseus.measurement.unbatched_limit import unseen_requests
from perseus.measurement.verify import refuse_cached, verify
from perseus.peak import stats
from perseus.peak.stats import Floats
from perseus.serving.launch import launch
from perseus.serving.running_server import RunningServer
from perseus.serving.server_facts import server_facts
from perseus.traffic.client import sequential_ms
from perseus.traffic.route import Route

UNLOADED_REQUESTS = 40
UNLOADED_LIMIT_S = 2.0

NO_SERVER: Final[Mapping[str, Any]] = {
    "startup_s": None,
    "server_name": None,
    "triton_version": None,
    "tells_statistics": True,
    "image_id": None,
    "round_trip_p50_ms": None,
    "first_inference_ms": {},
    "relative_errors": {},
    "computed_precisions": {},
    "max_batch_sizes": {},
    "served_models": {},
    "unloaded_p50_ms": {},
    "unseen_p50_ms": {},
    "unbatched_limit_rps": {},
    "request_bytes": {},
    "client_preprocess_ms": {},
}
"""The keys of record.json that describe the server, with the values for a cell without a server."""


@contextmanager
def started(cell: CellUnderTest) -> Iterator[RunningServer]:
    """Start a fresh server; yield the server when its models are ready.

    Raises ServerError if the server does not start.
    """
    task = cell.task
    has_priorities = any(tenant.priority is not None for tenant in task.tenants)
    cell.say("starting the server")
    cell.progressed()
    with launch(
        task.server,
        cell.inputs.repository,
        cell.server_log,
        cell.server_cores,
        say=cell.say,
        rate_limited_cores=len(cell.server_cores) if has_priorities else 0,
    ) as server:
        cell.progressed(server)
        yield server


@dataclass(frozen=True)
class ServerUnderTest:
    """A running server that Perseus monitors, and whose responses Perseus has checked.

    `tenants` contains the tenants of the cell in their order. `unloaded_ms` contains, by tenant,
    the latencies of single requests without other load. `unloaded_p50_ms` contains, by tenant, the
    median of `unloaded_ms`. `record` is the part of record.json that describes the server.
    """

    cell: CellUnderTest
    server: RunningServer
    tenants: Sequence[TenantUnderTest]
    routes: Mapping[str, Route]
    unloaded_ms: Mapping[str, Floats]
    unloaded_p50_ms: Mapping[str, float]
    record: Mapping[str, Any]

    def under_load(self) -> AbstractContextManager[LiveSystem]:
        """Start the clients of all tenants; yield a system that offers load through the clients."""
        return under_load(self.cell, self.server, self.tenants, self.routes)


def without_server(cell: CellUnderTest) -> dict[str, Any]:
    """Return the keys in NO_SERVER, for the record.json of a cell without a server.

    If the file server.log does not exist, the function writes this file. Its text says that Perseus
    started no server.
    """
    if not cell.server_log.exists():
        cell.server_log.write_text("No server was started.\n")
    return dict(NO_SERVER)


@contextmanager
def server_under_test(cell: CellUnderTest) -> Iterator[ServerUnderTest]:
    """Start and check a server, and monitor the server while the context is open.

    Raises ServerError if the server does not start. Raises VerificationError if the server sends
    wrong responses, or responses from a cache.
    """
    with started(cell) as server:
        tenants = tenants_on(server, cell.task, cell.inputs.references)
        first_ms, errors = first_inferences(tenants), verify(tenants)
        served = {tenant.name: asdict(tenant.served) for tenant in tenants if tenant.served}
        facts, preprocess_ms = server_facts(server), client_preprocess_ms(tenants)
        monitor = Monitor(
            cell.raw.monitor,
            server,
            cell.server_cores,
            cell.client_cores,
            gpus=cell.task.server.gpus,
        )
        with monitor, routes_to(tenants) as routes:
            unloaded_ms = {
                name: sequential_ms(route, UNLOADED_REQUESTS, UNLOADED_LIMIT_S)
                for name, route in routes.items()
            }
            refuse_cached(server, tenants)
            unseen = {
                tenant.name: unseen_requests(server, tenant, facts["round_trip_p50_ms"])
                for tenant in tenants
            }
            p50_ms = {name: stats.percentile(ms, 50) for name, ms in unloaded_ms.items()}
            runtime = cell.task.server.runtime
            record = {
                "startup_s": server.startup_s,
                **facts,
                "first_inference_ms": first_ms,
                "relative_errors": errors,
                "computed_precisions": computed_precisions(server, runtime, tenants),
                "max_batch_sizes": {tenant.name: tenant.max_batch_size for tenant in tenants},
                "served_models": served,
                "unloaded_p50_ms": p50_ms,
                "unseen_p50_ms": {name: found.p50_ms for name, found in unseen.items()},
                "unbatched_limit_rps": {name: found.limit_rps for name, found in unseen.items()},
                "request_bytes": {tenant.name: tenant.request_bytes for tenant in tenants},
                "client_preprocess_ms": preprocess_ms,
            }
            yield ServerUnderTest(cell, server, tenants, routes, unloaded_ms, p50_ms, record)
