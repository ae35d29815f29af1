"""Compare how long Snakemake needs to plan the study `scale` and two workflows without Perseus: a
trivial workflow with as many jobs, and a workflow whose jobs declare the same files and parameters.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import generated_study
from benchmarks.results import Goal, Row
from benchmarks.serving import Place, Say
from perseus.study import files
from perseus.study.cells import Study

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


DECLARED = """
import json

with open("declared.json") as file:
    NEEDED = json.load(file)

rule all:
    input: NEEDED["measured"]

rule measure:
    input: lambda w: NEEDED["cells"][w.cell]
    output: directory("results/scale/raw/{cell}")
    log: "logs/{cell}.log"
    conda: "environment.yaml"
    threads: 2
    resources: mem_mb=4000, local_server=1
    params: task={"cell": "{cell}"}, code="code", versions="versions"
    message: "Measuring {wildcards.cell}"
    script: "nothing.py"

rule repeats:
    input: lambda w: NEEDED["repeats"][w.repeated]
    output: "results/scale/repeats/{repeated}.json"
    script: "nothing.py"

rule repository:
    input: lambda w: NEEDED["repositories"][w.scenario]
    output: directory("model_repository/scale/{scenario}")
    script: "nothing.py"

rule export:
    output: [f"results/scale/models/{{model}}/{name}" for name in NEEDED["export"]]
    script: "nothing.py"
"""


def run(at: Place, say: Say) -> Iterator[Row]:
    folder = at.folder / "planning"
    folder.mkdir(parents=True, exist_ok=True)
    jobs, _ = planned(folder, OURS)
    workflows = {
        "ours": OURS,
        "trivial": written(folder / "trivial.smk", TRIVIAL.format(count=jobs - 1)),
        "declared": written(folder / "declared.smk", DECLARED),
    }
    (folder / "declared.json").write_text(json.dumps(declared(generated_study.study(repeats=10))))
    (folder / "environment.yaml").write_text("dependencies: [python]\n")
    (folder / "nothing.py").touch()
    counts: dict[str, int] = {}
    seconds: dict[str, list[float]] = {name: [] for name in workflows}
    for _ in range(ROUNDS):
        for name, arguments in workflows.items():
            counts[name], took_s = planned(folder, arguments)
            seconds[name].append(took_s)
            say(f"{name}: {counts[name]} jobs in {took_s:.1f} s")
    assert counts["ours"] == counts["trivial"] == jobs
    ours_s, trivial_s, declared_s = (float(np.median(each)) for each in seconds.values())
    case = f"a dry run of the study scale, {jobs} jobs"
    yield Row(
        BENCHMARK,
        case,
        "seconds (lower is better)",
        ours_s,
        trivial_s,
        "as many jobs of one trivial rule",
        Goal("<=", 1.5),
    )
    yield Row(
        BENCHMARK,
        case,
        "seconds (lower is better)",
        ours_s,
        declared_s,
        f"{counts['declared']} jobs that declare the same files",
    )


def written(path: Path, text: str) -> list[str]:
    """Write a workflow to a file, and return the arguments with which Snakemake loads the file."""
    path.write_text(text)
    return ["--snakefile", str(path)]


def declared(of: Study) -> dict[str, Any]:
    """Return the files that the jobs of a study read and write, without the files of figures and
    client ceilings. For a rule with several jobs, the value is a mapping from the cell, scenario or
    peak of a job to its files."""
    cells = of.cells.values()
    peaks = {peak for cell in cells for peak in of.dedicated_peaks(cell)}
    return {
        "measured": files.raw(of, cells),
        "cells": {cell.id: list(chain(*files.cell_inputs(of, cell).values())) for cell in cells},
        "repositories": {
            id: list(chain(*files.repository_inputs(of, scenario).values()))
            for id, scenario in of.scenarios.items()
        },
        "export": ("model.onnx", "reference.npz", "check.json"),
        "repeats": {peak: files.raw(of, of.repeats_of(peak)) for peak in peaks},
    }


def planned(folder: Path, arguments: list[str]) -> tuple[int, float]:
    """Return the number of jobs and the seconds of a dry run in a folder. Raises CalledProcessError
    if the dry run fails."""
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
