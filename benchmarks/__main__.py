"""Run benchmarks, all or those named, and write their tables and docs/benchmarks.md.

python -m benchmarks [client] [honesty] [search] [live] [limit] [coverage] [ablation]
    [repeats] [repeatability] [noise] [planning] [aggregation] [planner] [compare]
    [prediction]
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
    client,
    compare,
    coverage,
    honesty,
    limit,
    noise,
    planner,
    planning,
    prediction,
    repeatability,
    repeats,
    search_cost,
    search_live,
)
from benchmarks.page import PAGE, RESULTS, page
from benchmarks.perf_analyzer import FetchError, PerfAnalyzer, install
from benchmarks.results import Row, write_rows
from benchmarks.serving import Place, Say, place
from perseus.host import machine
from perseus.host.files import whole, write_json
from perseus.host.signals import terminate_as_exit

SCRATCH = Path(".bench")


def main(names: list[str]) -> int:
    if unknown := set(names) - set(BENCHMARKS):
        print(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
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
    """Run one benchmark, write its table and host, and make the page anew."""
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


def _client(at: Place, say: Say) -> Iterator[Row]:
    return client.run(at, _peer(at), say)


def _honesty(at: Place, say: Say) -> Iterator[Row]:
    return honesty.run(at, _peer(at), say)


def _search(at: Place, say: Say) -> Iterator[Row]:
    return search_cost.run(say)


def _live(at: Place, say: Say) -> Iterator[Row]:
    return (replace(row, benchmark="live") for row in search_live.run(at, _peer(at), say))


def _coverage(at: Place, say: Say) -> Iterator[Row]:
    os.sched_setaffinity(0, [at.client_core, at.server_core])
    return coverage.run(say)


def _ablation(at: Place, say: Say) -> Iterator[Row]:
    os.sched_setaffinity(0, [at.client_core, at.server_core])
    return ablation.run(say)


def _repeats(at: Place, say: Say) -> Iterator[Row]:
    return repeats.run(say)


def _compare(at: Place, say: Say) -> Iterator[Row]:
    return compare.run(say)


def _prediction(at: Place, say: Say) -> Iterator[Row]:
    return prediction.run(say)


def _peer(at: Place) -> PerfAnalyzer:
    return install(at.folder, [at.client_core])


BENCHMARKS: dict[str, Callable[[Place, Say], Iterator[Row]]] = {
    "client": _client,
    "honesty": _honesty,
    "search": _search,
    "live": _live,
    "limit": limit.run,
    "coverage": _coverage,
    "ablation": _ablation,
    "repeats": _repeats,
    "repeatability": repeatability.run,
    "noise": noise.run,
    "planning": planning.run,
    "aggregation": aggregation.run,
    "planner": planner.run,
    "compare": _compare,
    "prediction": _prediction,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
