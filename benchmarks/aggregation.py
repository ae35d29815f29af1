"""Measure the time and memory of the jobs that make tables, figures and report, for 1,000 cells
with 10^8 requests."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import generated_study
from benchmarks.results import Goal, Row
from benchmarks.serving import Place, Say
from perseus.host.files import write_json
from perseus.host.page_cache import evict
from perseus.report.figures import FIGURES, figures_of
from perseus.study import planning
from perseus.study.cells import Study

BENCHMARK = "aggregation"
ROOT = Path(__file__).parents[1]
REQUESTS = 10**8
BYTES_A_REQUEST = 25
"""Upper limit for the size of one request in the raw results, in bytes."""

FEWER, TIMES = 100, 3
"""The benchmark also makes the tables for the same cells with 1/FEWER of the requests, TIMES times,
to measure how much the number of requests matters."""

MIB = 2**20
MEMORY = Goal("<=", 1024, of="ours")
ALL_RAW = "reading all raw results once"


@dataclass(frozen=True)
class Took:
    """Resources of a job: its run time, its peak memory, and the bytes that it read."""

    took_s: float
    rss_bytes: int
    read_bytes: int


def run(at: Place, say: Say) -> Iterator[Row]:
    os.sched_setaffinity(0, [at.client_core, at.server_core])
    folder = at.folder / "aggregation"
    shutil.rmtree(folder, ignore_errors=True)
    if shutil.disk_usage(at.folder).free < 2 * REQUESTS * BYTES_A_REQUEST:
        say(f"{folder} has too little free space for {REQUESTS} requests")
        return
    study = generated_study.study()
    try:
        yield from aggregated(folder / "all", study, REQUESTS, say)
        yield of_requests(folder, study, say)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def aggregated(folder: Path, study: Study, requests: int, say: Say) -> Iterator[Row]:
    """Write raw results with `requests` requests into an empty folder, and yield the rows of the
    benchmark for the jobs that make predictions, tables, figures and report."""
    cells = generated_study.write(study, requests, folder / "raw")
    files = [file for cell in cells for file in cell.iterdir()]
    size = sum(file.stat().st_size for file in files)
    case = f"{len(cells):,} cells, {requests:,} requests, {size / 1e9:.2f} GB"
    say(case)
    _write_tasks(study, folder)
    plain_s = read_all(files)
    say(f"read in {plain_s:.1f} s")
    for name in ("predictions", "tables"):
        evict(files)
        made = job(folder, name)
        yield Row(BENCHMARK, case, f"MiB of memory, {name}", made.rss_bytes / MIB, goal=MEMORY)
        yield Row(
            BENCHMARK,
            case,
            f"seconds, {name} (lower is better)",
            made.took_s,
            plain_s,
            ALL_RAW,
            Goal("<=", 1.0),
        )
        read = made.read_bytes
        yield Row(BENCHMARK, case, f"MB read, {name}", read / 1e6, size / 1e6, "all")
    drawn = {}
    for figure in figures_of(study.kinds):
        evict(files)
        drawn[figure] = job(folder, "figure", figure)
        say(f"{figure}: {drawn[figure]}")
    yield from _figures(case, drawn)
    evict(files)
    written = job(folder, "report")
    yield Row(BENCHMARK, case, "MiB of memory, report", written.rss_bytes / MIB, goal=MEMORY)
    yield Row(BENCHMARK, case, "seconds, report (lower is better)", written.took_s)


def of_requests(folder: Path, study: Study, say: Say) -> Row:
    """Return how many seconds longer the tables take for cells with all requests than for the same
    cells with few requests. The folder `folder / "all"` has the cells with all requests."""
    cells = {"all": sorted((folder / "all" / "raw").iterdir())}
    cells["few"] = generated_study.write(study, REQUESTS // FEWER, folder / "few" / "raw")
    _write_tasks(study, folder / "few")
    files = {name: [file for cell in of for file in cell.iterdir()] for name, of in cells.items()}
    more_s = []
    for _ in range(TIMES):
        took_s = {}
        for name, of in files.items():
            evict(of)
            took_s[name] = job(folder / name, "tables").took_s
        more_s.append(took_s["all"] - took_s["few"])
        say(f"tables: {took_s}")
    plain_s = read_all(files["all"]) - read_all(files["few"])
    return Row(
        BENCHMARK,
        f"{len(cells['all']):,} cells, {REQUESTS:,} requests instead of {REQUESTS // FEWER:,}",
        "additional seconds, tables (lower is better)",
        statistics.median(more_s),
        plain_s,
        "reading the additional raw results once",
    )


def _write_tasks(study: Study, folder: Path) -> None:
    for name, task in (
        ("predictions", planning.predictions_task(study)),
        ("tables", planning.tables_task(study)),
        ("figure", planning.figure_task(study)),
        ("report", planning.report_task(study)),
    ):
        write_json(folder / f"{name}.json", task.plain())


def _figures(case: str, drawn: dict[str, Took]) -> Iterator[Row]:
    most = max(drawn, key=lambda name: drawn[name].rss_bytes)
    yield Row(
        BENCHMARK,
        case,
        f"MiB of memory, largest figure ({most})",
        drawn[most].rss_bytes / MIB,
        goal=MEMORY,
    )
    raw = [took for name, took in drawn.items() if FIGURES[name].reads_raw]
    seconds = sum(took.took_s for took in raw)
    yield Row(BENCHMARK, case, f"seconds, {len(raw)} figures of raw results", seconds)
    every = sum(took.took_s for took in drawn.values())
    yield Row(BENCHMARK, case, f"seconds, all {len(drawn)} figures", every)


def read_all(files: Sequence[Path]) -> float:
    """Remove the files from the page cache, and return the seconds to read them one after
    another."""
    evict(files)
    start_s, buffer = time.monotonic(), bytearray(4 * MIB)
    for path in files:
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass
    return time.monotonic() - start_s


def job(folder: Path, *what: str) -> Took:
    """Run one job of `benchmarks.aggregation_job`. Raises CalledProcessError if the job fails."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.aggregation_job", str(folder), *what],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "scripts")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    # The last line is the result. Solvers print other lines to the standard output.
    return Took(**json.loads(done.stdout.splitlines()[-1]))
