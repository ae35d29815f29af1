"""Run all benchmarks or the named benchmarks, and write tables and docs/evidence/benchmarks.md.

python -m benchmarks [client] [honesty] [search] [live] [limit] [coverage] [sharing]
    [interference] [ablation] [repeats] [repeatability] [noise] [planning] [aggregation]
    [planner] [compare] [prediction]
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import (
    ablation,
    aggregation,
    aiperf,
    client,
    compare,
    coverage,
    honesty,
    interference,
    limit,
    noise,
    planner,
    planning,
    prediction,
    repeatability,
    repeats,
    search_cost,
    search_live,
    sharing,
)
from benchmarks.aiperf import AIPerf
from benchmarks.page import PAGE, RESULTS, page
from benchmarks.perf_analyzer import FetchError, PerfAnalyzer, install
from benchmarks.results import Row, write_rows
from benchmarks.serving import Place, Say, place
from perseus.host import machine
from perseus.host.files import whole, write_json
from perseus.host.signals import terminate_as_exit

SCRATCH = Path(".bench")
Benchmark = Callable[[Place, Say], Iterator[Row]]


def main(names: list[str]) -> int:
    if unknown := set(names) - set(BENCHMARKS):
        print(f"unknown: {', '.join(sorted(unknown))}. Known benchmarks: {', '.join(BENCHMARKS)}")
        return 2
    at = place(SCRATCH)
    os.sched_setaffinity(0, [at.client_core])
    with terminate_as_exit():
        for name in names or list(BENCHMARKS):
            try:
                run(name, at)
            except FetchError as error:
                print(error, file=sys.stderr)
                return 1
    return 0


def run(name: str, at: Place) -> None:
    """Run one benchmark, and write its table, the record of its host, and the page."""
    start_s = time.monotonic()

    def say(text: str) -> None:
        print(f"{name} {time.monotonic() - start_s:5.0f} s  {text}", flush=True)

    rows = []
    for row in BENCHMARKS[name](at, say):
        rows.append(row)
        cells = row.cells()
        say(": ".join(cells[1:3]) + f": {cells[3]}, {row.peer_name} {cells[4]}, {cells[7:]}")
    write_rows(RESULTS / f"{name}.csv", rows)
    about = machine.describe([at.server_core], [at.client_core])
    about |= {"date": datetime.now(UTC).date().isoformat(), "seconds": time.monotonic() - start_s}
    write_json(RESULTS / f"{name}.json", about)
    with whole(PAGE) as partial:
        partial.write_text(page(RESULTS))


def _beside_peer(of: Callable[[Place, PerfAnalyzer, Say], Iterator[Row]]) -> Benchmark:
    return lambda at, say: of(at, install(at.folder, [at.client_core]), say)


def _beside_both(
    of: Callable[[Place, PerfAnalyzer, AIPerf, Say], Iterator[Row]],
) -> Benchmark:
    def run(at: Place, say: Say) -> Iterator[Row]:
        cores = [at.client_core]
        return of(at, install(at.folder, cores), aiperf.install(at.folder, cores), say)

    return run


def _live(at: Place, peer: PerfAnalyzer, second: AIPerf, say: Say) -> Iterator[Row]:
    return (replace(row, benchmark="live") for row in search_live.run(at, peer, second, say))


BENCHMARKS: dict[str, Benchmark] = {
    "client": _beside_both(client.run),
    "honesty": _beside_peer(honesty.run),
    "search": search_cost.run,
    "live": _beside_both(_live),
    "limit": limit.run,
    "coverage": coverage.run,
    "sharing": sharing.run,
    "interference": interference.run,
    "ablation": ablation.run,
    "repeats": repeats.run,
    "repeatability": repeatability.run,
    "noise": noise.run,
    "planning": planning.run,
    "aggregation": aggregation.run,
    "planner": planner.run,
    "compare": compare.run,
    "prediction": prediction.run,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
