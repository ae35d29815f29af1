"""Test whether repeated runs of a study on this machine give the same result.

The default study with one mix runs several times on restarted servers: on the unchanged host, and
beside a process that uses the core of the server in bursts.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import yaml

from benchmarks.results import Goal, Row
from benchmarks.serving import Place, Say
from perseus.peak.stats import Floats

BENCHMARK = "repeatability"
ROOT = Path(__file__).parents[1]
STUDY, MIX = "repeatability", [1, 1]
RUNS = 5
BURST_S, BURSTING = (0.2, 2.0), 0.15
"""Range of the uniformly distributed length of a burst, and the share of time with bursts."""

Peaks = Sequence[Mapping[str, Any]]
"""The table of peaks of one run."""


def run(at: Place, say: Say) -> Iterator[Row]:
    folder = at.folder / BENCHMARK
    folder.mkdir(exist_ok=True)
    configuration = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
    configuration["study"] = STUDY
    configuration["scenarios"][0]["experiments"] = [{"kind": "peak", "mixes": [MIX]}]
    (folder / "study.yaml").write_text(yaml.safe_dump(configuration))
    os.sched_setaffinity(0, [at.client_core, at.server_core])
    say("the study on the unchanged host")
    runs = [_measured(folder, say) for _ in range(RUNS)]
    yield from rows_of(f"unchanged host, {RUNS} runs", runs)
    with bursts_on(at.server_core):
        runs = [_measured(folder, say) for _ in range(RUNS)]
    low_s, high_s = BURST_S
    case = f"with bursts of {low_s:g} to {high_s:g} s, {BURSTING:.0%} of the time, {RUNS} runs"
    yield from rows_of(case, runs)


def _measured(folder: Path, say: Say) -> Peaks:
    """Measure every cell again, keep all other files, and return the table of peaks."""
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--cores", "4"]
    command += ["--directory", str(folder), "--configfile", str(folder / "study.yaml")]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    start_s = time.monotonic()
    with (folder / "snakemake.log").open("ab") as log:
        subprocess.run(
            [*command, "--forcerun", "measure", "--", "tables"],
            stdout=log,
            stderr=log,
            check=True,
            env=os.environ | {"PATH": path},
        )
    peaks: Peaks = pq.read_table(
        folder / "results" / STUDY / "tables" / "peaks.parquet"
    ).to_pylist()
    peaks_text = ", ".join(
        f"{peak['mix']} {peak['verdict']} {peak['estimate_rps']:.4g}/s" for peak in peaks
    )
    say(f"{peaks_text} ({time.monotonic() - start_s:.0f} s)")
    return peaks


@contextmanager
def bursts_on(core: int) -> Iterator[None]:
    """Run a process that uses a core in bursts."""
    process = get_context("spawn").Process(target=_burst, args=(core,), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def _burst(core: int) -> None:
    os.sched_setaffinity(0, [core])
    draw = random.Random(0)
    pause_s = sum(BURST_S) / 2 * (1 / BURSTING - 1)
    while True:
        time.sleep(draw.expovariate(1 / pause_s))
        end_s = time.monotonic() + draw.uniform(*BURST_S)
        while time.monotonic() < end_s:
            pass


def rows_of(case: str, runs: Sequence[Peaks]) -> Iterator[Row]:
    """Yield rows that state how much the results of the runs differ. The interval of a run without
    a sharing ratio overlaps no other interval."""
    cells = [peak for peaks in runs for peak in peaks]
    found = [np.isfinite(_number(cell["estimate_rps"])) for cell in cells]
    yield Row(BENCHMARK, case, "share of cells with an estimate", float(np.mean(found)), goal=ALL)
    ratios = np.array([_ratio(peaks) for peaks in runs])
    pairs = [overlap(one, other) for one, other in combinations(ratios.tolist(), 2)]
    metric = "share of pairs of runs whose intervals of the sharing ratio overlap"
    yield Row(BENCHMARK, case, metric, float(np.mean(pairs)), goal=Goal(">=", 0.95, "ours"))
    between, claimed = float(np.std(np.log(ratios[:, 0]), ddof=1)), _claimed(ratios)
    metric = (
        "deviation of the sharing ratio between runs, divided by the deviation from its interval"
    )
    yield Row(BENCHMARK, case, metric, between / claimed, goal=Goal("<=", 1, "ours"))
    yield Row(BENCHMARK, case, "mean sharing ratio", float(np.mean(ratios[:, 0])))
    yield Row(BENCHMARK, case, "deviation of the sharing ratio between runs", between)
    blind = [_without_speeds(peaks) for peaks in runs]
    metric = "deviation of the sharing ratio between runs, from the peaks alone"
    yield Row(BENCHMARK, case, metric, float(np.std(np.log(blind), ddof=1)))
    for mix in dict.fromkeys(cell["mix"] for cell in cells):
        rates = [_number(cell["estimate_rps"]) for cell in cells if cell["mix"] == mix]
        yield Row(BENCHMARK, case, f"mean peak of {mix}, requests/s", float(np.mean(rates)))
        metric = f"deviation of the peak of {mix} between runs"
        yield Row(BENCHMARK, case, metric, float(np.std(np.log(rates), ddof=1)))


def _ratio(peaks: Peaks) -> tuple[float, float, float]:
    """Return the sharing ratio and the ends of its interval, or NaN."""
    (shared,) = (peak for peak in peaks if peak["kind"] != "dedicated")
    columns = ("sharing_ratio", "sharing_ratio_low", "sharing_ratio_high")
    value, low, high = (_number(shared[column]) for column in columns)
    return value, low, high


def _without_speeds(peaks: Peaks) -> float:
    """Return the sharing ratio computed from the estimated peaks only; the tenants must have equal
    shares of their dedicated peaks."""
    alone_rps = [_number(peak["estimate_rps"]) for peak in peaks if peak["kind"] == "dedicated"]
    (shared_rps,) = (_number(p["estimate_rps"]) for p in peaks if p["kind"] != "dedicated")
    return shared_rps / float(np.mean(alone_rps))


def overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    """Return whether the intervals of two (value, low, high) overlap. An interval of NaN overlaps
    no other interval."""
    return one[1] <= other[2] and other[1] <= one[2]


def _claimed(ratios: Floats) -> float:
    """Return the standard deviation of the logarithm of the ratio, derived from the median width of
    the 95 % intervals."""
    return float(np.median(np.log(ratios[:, 2] / ratios[:, 1]))) / (2 * 1.96)


def _number(value: float | None) -> float:
    return np.nan if value is None else value


ALL = Goal(">=", 1, "ours")
