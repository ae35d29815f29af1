"""Check the section `measurement`: the arrival process and the client."""

from __future__ import annotations

import math
from pathlib import Path

from perseus.study.checks.files import trace_problems
from perseus.study.definition import Definition
from perseus.study.launchers import LAUNCHERS
from perseus.study.measurement import ArrivalProcess
from perseus.study.problems import Place, Problems, path
from perseus.study.protocols import MAX_IN_FLIGHT


def problems(study: Definition, folder: Path) -> Problems:
    if study.measurement.client.shared_memory:
        yield from _shared_memory_problems(study)
    yield from _in_flight_problems(study)
    yield from _arrivals_problems(("measurement", "arrivals"), study.measurement.arrivals, folder)


def _shared_memory_problems(study: Definition) -> Problems:
    used = {name for item in study.scenarios for name in item.servers}
    for i, server in enumerate(study.servers):
        if server.name in used and not LAUNCHERS[server.launcher].shares_memory:
            yield (
                ("measurement", "client", "shared_memory"),
                f"{path(('servers', i))} (launcher {server.launcher!r}) is not on this host, or"
                " cannot access the shared memory of this host (set `shared_memory: false`)",
            )


def _in_flight_problems(study: Definition) -> Problems:
    """Yield a problem for each experiment whose closed loops need more requests in flight than the
    client can have."""
    client = study.measurement.client
    each = MAX_IN_FLIGHT[client.protocol]
    processes = 1 if client.processes == "auto" else client.processes
    for i, scenario in enumerate(study.scenarios):
        for j, experiment in enumerate(scenario.experiments):
            wanted = experiment.most_in_flight
            if wanted > processes * each:
                yield (
                    ("scenarios", i, "experiments", j),
                    f"needs {wanted} requests of each tenant in flight, but a client process with"
                    f" {client.protocol} can have at most {each} requests in flight (lower the"
                    f" number, or set `measurement.client.processes: {math.ceil(wanted / each)}` or"
                    " `measurement.client.protocol: grpc`)",
                )


def _arrivals_problems(at: Place, arrivals: ArrivalProcess, folder: Path) -> Problems:
    for key, only in (("cv", "gamma"), ("trace", "trace")):
        if getattr(arrivals, key) is not None and arrivals.process != only:
            process = repr(arrivals.process)
            yield (*at, key), f"applies only to `process: {only}`, but `process` is {process}"
    at = (*at, "trace")
    if arrivals.trace is not None:
        yield from trace_problems(at, arrivals.trace, folder)
    elif arrivals.process == "trace":
        yield at, "is missing (a file of recorded arrivals)"
