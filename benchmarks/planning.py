"""How long Snakemake plans the study `scale`, beside a trivial workflow of as many jobs."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.results import Goal, Row
from benchmarks.serving import Place, Say

BENCHMARK = "planning"
ROOT = Path(__file__).parents[1]
ROUNDS = 3
STUDY = ROOT / "config" / "studies" / "scale.yaml"
OURS = ["--snakefile", str(ROOT / "Snakefile"), "--configfile", str(STUDY)]
TRIVIAL = """
rule all:
    input: expand("out/{{number}}.txt", number=range({count}))

rule one:
    output: "out/{{number}}.txt"
    shell: "touch {{output}}"
"""


def run(at: Place, say: Say) -> Iterator[Row]:
    folder = at.folder / "planning"
    folder.mkdir(parents=True, exist_ok=True)
    jobs, _ = planned(folder, OURS)
    trivial = folder / "trivial.smk"
    trivial.write_text(TRIVIAL.format(count=jobs - 1))
    seconds: dict[str, list[float]] = {"ours": [], "trivial": []}
    for _ in range(ROUNDS):
        for name, arguments in (("ours", OURS), ("trivial", ["--snakefile", str(trivial)])):
            count, took_s = planned(folder, arguments)
            assert count == jobs
            seconds[name].append(took_s)
            say(f"{name}: {count} jobs in {took_s:.1f} s")
    ours_s, trivial_s = (float(np.median(each)) for each in seconds.values())
    yield Row(
        BENCHMARK,
        f"a dry run of the study scale, {jobs} jobs",
        "seconds (lower is better)",
        ours_s,
        trivial_s,
        "a rule that touches files",
        Goal("<=", 1.5),
    )


def planned(folder: Path, arguments: list[str]) -> tuple[int, float]:
    """Jobs and seconds of a dry run in a folder; raises CalledProcessError when it fails."""
    start_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--dry-run", "--quiet", "rules", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    took_s = time.monotonic() - start_s
    (jobs,) = re.findall(r"^total +(\d+)$", done.stdout, re.MULTILINE)[:1]
    return int(jobs), took_s
