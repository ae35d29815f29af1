"""The arrivals and the client of a study."""

from __future__ import annotations

from pathlib import Path

from perseus.study.checks.files import trace_problems
from perseus.study.definition import Definition
from perseus.study.launchers import LAUNCHERS
from perseus.study.measurement import ArrivalProcess
from perseus.study.problems import Place, Problems, path


def problems(study: Definition, folder: Path) -> Problems:
    """`folder` is where paths start from."""
    if study.measurement.client.shared_memory:
        yield from _shared_memory_problems(study)
    yield from _arrivals_problems(("measurement", "arrivals"), study.measurement.arrivals, folder)


def _shared_memory_problems(study: Definition) -> Problems:
    for i, server in enumerate(study.servers):
        if not LAUNCHERS[server.launcher].shares_memory:
            yield (
                ("measurement", "client", "shared_memory"),
                f"the server of {path(('servers', i))}, launcher {server.launcher!r}, is not on"
                " this host or does not share its memory (set it to false)",
            )


def _arrivals_problems(at: Place, arrivals: ArrivalProcess, folder: Path) -> Problems:
    for key, only in (("cv", "gamma"), ("trace", "trace")):
        if getattr(arrivals, key) is not None and arrivals.process != only:
            process = repr(arrivals.process)
            yield (*at, key), f"is of process: {only} only, and process is {process}"
    at = (*at, "trace")
    if arrivals.trace is not None:
        yield from trace_problems(at, arrivals.trace, folder)
    elif arrivals.process == "trace":
        yield at, "is missing (a file with one arrival time per line, in seconds or as a date)"
