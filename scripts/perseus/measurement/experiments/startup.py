"""Run the experiment `startup`: measure the time from the start of a fresh server to its first
responses.

As in every cell, Perseus first starts a server and checks its responses. This start does not count.
Perseus then starts further servers, and measures the start and the first requests of each server.
If the study names several states of the page cache (warm, cold), the states alternate from start to
start, so that a change of the host's speed does not look like an effect of the page cache.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, cast

from perseus.host.page_cache import evict, resident_share
from perseus.measurement.cell import CellUnderTest, Findings
from perseus.measurement.clients import routes_to
from perseus.measurement.first_inferences import first_inferences
from perseus.measurement.server_under_test import server_under_test, started
from perseus.measurement.tenant_under_test import tenants_on
from perseus.peak import stats
from perseus.peak.outcome import Outcome
from perseus.serving.failures import ServerError
from perseus.study.experiments.startup import Run
from perseus.study.tasks.measure import MeasureTask
from perseus.study.triton_models import tenant_of
from perseus.traffic.client import ClientError, sequential_ms
from perseus.traffic.route import RouteError

STEADY_REQUESTS: Final = 20
STEADY_LIMIT_S: Final = 2.0
START_S: Final = 8.0
"""Approximate time in seconds to start a server, measure its first requests, and end the server."""

LOG_LINE: Final = re.compile(
    r"I\d{4} (\d\d):(\d\d):(\d\d\.\d+) .*"
    r"\"(?:loading: (.+):\d+\"|successfully loaded '(.+)'\")"
)
"""A line of Triton's log at the start or the end of the loading of a model. The line contains the
time of day and the name of the model."""

DAY, SECOND = timedelta(days=1), timedelta(seconds=1)


@dataclass(frozen=True)
class Start:
    """One start of a server. Each dictionary contains values by tenant.

    `page_cache` is the configured state of the page cache. `resident_share` is the share (0..1) of
    the model files that was in the page cache before the start. `ready_s` is the time in seconds
    from the start of the server until the server is ready. `load_s` contains the time in seconds to
    load the models of each tenant, as far as the server's log states this time.
    `first_inference_ms` contains the latency of the first request, and `steady_inference_ms`
    contains the median latency of later single requests.
    """

    page_cache: str
    resident_share: float
    ready_s: float
    load_s: Mapping[str, float]
    first_inference_ms: Mapping[str, float]
    steady_inference_ms: Mapping[str, float]


def measure(cell: CellUnderTest) -> Findings:
    """Start the servers one after another."""
    run = cast(Run, cell.task.run)
    with server_under_test(cell) as server:
        record = server.record
    outcome, reason, starts = Outcome.OK, "", list[Start]()
    try:
        for i in range(run.starts):
            for page_cache in run.page_cache:
                starts.append(one_start(cell, page_cache))
                cell.say(_described(starts[-1], i + 1, run.starts))
    except (ServerError, ClientError, RouteError) as error:
        outcome, reason = Outcome.FAILED, f"start {len(starts) + 1}: {error}"
    told = [asdict(start) for start in starts]
    return Findings({**record, "outcome": outcome, "reason": reason, "starts": told})


def empty_record(cell: CellUnderTest) -> Mapping[str, Any]:
    return {"starts": []}


def load_s(task: MeasureTask) -> tuple[float, float]:
    """Return the usual duration and the longest duration of the experiment, in seconds."""
    run = cast(Run, task.run)
    seconds = START_S * (1 + run.starts * len(run.page_cache))
    return seconds, 3 * seconds


def one_start(cell: CellUnderTest, page_cache: str) -> Start:
    """Start a server, and measure how long its start and its first requests take.

    Raises ServerError, ClientError or RouteError if the server does not start or does not answer a
    request.
    """
    task = cell.task
    assert cell.inputs.repository is not None  # only remote servers have none
    files = [path for path in cell.inputs.repository.glob("*/**/*") if path.is_file()]
    if page_cache == "cold":
        evict(files)
    share = resident_share(files)
    with started(cell) as server:
        tenants = tenants_on(server, task, cell.inputs.references)
        first_ms = first_inferences(tenants)
        with routes_to(tenants) as routes:
            steady_ms = {
                name: stats.percentile(sequential_ms(route, STEADY_REQUESTS, STEADY_LIMIT_S), 50)
                for name, route in routes.items()
            }
    loaded_s = loads_s(cell.server_log)
    return Start(page_cache, share, server.startup_s, loaded_s, first_ms, steady_ms)


def loads_s(server_log: Path) -> dict[str, float]:
    """Return, by tenant, how many seconds Triton needed to load the models of the tenant.

    The times come from Triton's log. If Triton's log is on another host, the result is empty.
    """
    begun, loaded = dict[str, timedelta](), dict[str, float]()
    for line in server_log.read_text(errors="replace").splitlines():
        if match := LOG_LINE.match(line):
            at_s = timedelta(hours=int(match[1]), minutes=int(match[2]), seconds=float(match[3]))
            tenant = tenant_of(match[4] or match[5])
            if match[4]:
                begun.setdefault(tenant, at_s)
            elif tenant in begun:
                loaded[tenant] = (at_s - begun[tenant]) % DAY / SECOND
    return loaded


def _described(start: Start, number: int, of: int) -> str:
    first = ", ".join(f"{name} {ms:.0f} ms" for name, ms in start.first_inference_ms.items())
    return (
        f"start {number} of {of} (page cache {start.page_cache}, {start.resident_share:.0%} of the"
        f" model files in memory): ready after {start.ready_s:.2f} s, first inference {first}"
    )
