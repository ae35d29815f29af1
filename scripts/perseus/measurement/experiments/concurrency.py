"""Run the experiment `concurrency`: measure throughput and latency at fixed numbers of requests in
flight.

A closed loop sends the next request only after a response, so a slow server gets fewer requests.
Independent users would not wait for each other. Therefore the latencies in a closed loop do not
show whether the server keeps an SLA. Use the results to compare a server with measurements by other
load generators that use closed loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, cast

import numpy as np

from perseus.measurement.cell import CellUnderTest, Findings
from perseus.measurement.closed_loop import Throughput, closed_loop
from perseus.measurement.live_system import LiveSystem
from perseus.measurement.server_under_test import server_under_test
from perseus.measurement.windows import keep
from perseus.peak.durations import loop_s
from perseus.peak.outcome import Outcome
from perseus.peak.window import Window
from perseus.serving.failures import ServerError
from perseus.study.experiments.concurrency import Run
from perseus.study.tasks.measure import MeasureTask
from perseus.traffic.client import ClientError


def measure(cell: CellUnderTest) -> Findings:
    """Measure throughput and latency at each concurrency (number of requests in flight)."""
    outcome, reason, throughputs = Outcome.OK, "", list[Throughput]()
    with server_under_test(cell) as server:
        try:
            with server.under_load() as system:
                rng = cell.own_stream
                for each in sweep(cell.task, system, rng, partial(keep, cell, system)):
                    throughputs += each
        except (ServerError, ClientError) as error:
            outcome, reason = Outcome.FAILED, str(error)
    levels = [asdict(each) for each in sorted(throughputs, key=lambda each: each.concurrency)]
    return Findings({**server.record, "outcome": outcome, "reason": reason, "levels": levels})


def empty_record(cell: CellUnderTest) -> Mapping[str, Any]:
    return {"levels": []}


def load_s(task: MeasureTask) -> tuple[float, float]:
    """Return how long the experiment offers load, in seconds: usually, and at most.

    Both durations are equal, because all windows have the same length, and the experiment repeats
    no window.
    """
    seconds = len(_concurrencies(task)) * loop_s(task.search, task.slas)
    return seconds, seconds


def sweep(
    task: MeasureTask,
    system: LiveSystem,
    rng: np.random.Generator,
    on_window: Callable[[Window, float], None],
) -> Iterator[list[Throughput]]:
    """Run one window per concurrency. Yield the throughputs of the tenants in each window.

    The concurrency is the number of requests in flight of each tenant. Because the order is random,
    a change of the host's speed does not look like an effect of the concurrency. The verdict of a
    window only says whether the window is valid, because the SLA does not apply to a closed loop.
    The function calls `on_window` after each window, with the remaining seconds of load.
    """
    order = rng.permutation(np.asarray(_concurrencies(task)))
    for done, concurrency in enumerate(order.tolist(), start=1):
        window, of_tenants = closed_loop(task, system, "concurrency", concurrency)
        on_window(window, (len(order) - done) * window.elapsed_s)
        yield of_tenants


def _concurrencies(task: MeasureTask) -> Sequence[int]:
    return cast(Run, task.run).concurrencies
