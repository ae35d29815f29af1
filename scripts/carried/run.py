"""Run a study that `pack.py` packed, on a machine without Snakemake, within a time limit.

python3 perseus-carried/run.py RESULTS [--limit-s 720]

The script exports all models, several at the same time. Then it measures one cell (one repeat of
one measurement) after the other, each in its own process, as Snakemake does. 30 s before the time
limit, the script stops the running cell, writes the tables, and lists the cells without a
measurement.

The folder RESULTS then contains summary.json (the record of each cell), the tables as CSV,
raw.tar.xz (the raw results of the cells, and the tables as Parquet) and run.log.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from job import Job

    from perseus.study.tasks.export import ExportTask

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "scripts")]

LOG = "run.log"
LIBRARIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/lib")
SPARE_S = 30.0  # time for the tables and the archive
MIN_CELL_S = 20.0  # least remaining time to start a cell
CORES_PER_EXPORT = 2  # so on 16 cores, 8 models are exported at the same time


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--limit-s", type=float, default=720.0)
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    job = read_job(HERE / "study.json")
    if asked.cell:
        measure_cell(job, asked.cell, asked.results)
    else:
        run(job, asked.results, time.monotonic() + asked.limit_s)


def read_job(path: Path) -> Job:
    """Read the tasks of the study. If a required package is missing, exit with a message."""
    try:
        from job import Job

        from perseus.measurement import measure  # noqa: F401, needs all packages except torch's
    except (ImportError, RuntimeError) as error:  # tritonclient raises a RuntimeError
        why = error.__cause__ or error
        sys.exit(
            f"{why}: install the packages that the first lines of scripts/carried/pack.py list"
        )
    return Job.model_validate_json(path.read_bytes())


def run(job: Job, results: Path, end_s: float) -> None:
    """Run all tasks until the monotonic clock shows `end_s`.

    The exit code is 1 if no cell was measured, or if this machine cannot run the study.
    """
    from perseus.host import starter
    from perseus.results.tables import TABLES

    require_own(results)
    results.mkdir(parents=True, exist_ok=True)
    work = results / "work"
    with (results / LOG).open("w", buffering=1) as log:

        def say(message: str) -> None:
            line = f"[{end_s - time.monotonic():4.0f} s left] {message}"
            print(line, flush=True)
            print(line, file=log)

        try:
            require(job)
            # Remove the files of another study, since Triton serves all models in a repository.
            shutil.rmtree(work, ignore_errors=True)
            for left in (*(f"{table}.csv" for table in TABLES), "summary.json", "raw.tar.xz"):
                (results / left).unlink(missing_ok=True)
            starter.announce()  # cells and their servers end together with this process
            say(f"exporting {len(job.models)} models")
            export(job, work, say)
        except SystemExit as error:
            print(error, file=log)
            raise
        missed = [
            task.cell for task in job.cells if not begin(task.cell, results, end_s - SPARE_S, say)
        ]
        say("writing the tables")
        summarise(job, results, missed)
        say(f"done; not measured: {', '.join(missed) or 'nothing'}")
        if len(missed) == len(job.cells):
            sys.exit(1)


def require_own(results: Path) -> None:
    """Exit with a message if `results` is a file, or a folder with files of another program.

    In such a folder, `run` could delete files that are not from an earlier run.
    """
    if results.exists() and not results.is_dir():
        sys.exit(f"{results} is not a folder: name a new or empty folder")
    if results.exists() and any(results.iterdir()) and not (results / LOG).exists():
        sys.exit(f"{results} has files of other programs: name a new or empty folder")


def require(job: Job) -> None:
    """Exit with a message if the Triton server, a GPU or Python's shared library is missing."""
    from perseus.host import gpu
    from perseus.serving import triton_wheel
    from perseus.serving.failures import ServerError

    try:
        triton_wheel.find_installation()
        for task in job.cells:
            gpu.require(task.server.gpus)
    except (gpu.GpuError, ServerError) as error:
        sys.exit(str(error))
    library = f"libpython{sys.version_info.major}.{sys.version_info.minor}.so.1.0"
    folders = [HERE / "scripts" / "nvidia_pytriton.libs", sysconfig.get_config_var("LIBDIR")]
    if not any(Path(folder, library).exists() for folder in [*folders, *LIBRARIES]):
        sys.exit(
            f"this machine has no {library}, which the server needs to run models in Python: take"
            " this file from a libpython package of Debian or Ubuntu, and pack the study again with"
            " --libpython FILE"
        )


def export(job: Job, work: Path, say: Callable[[str], None]) -> None:
    """Export all models, several at the same time.

    If an export fails because of this machine (for example, its memory is too small), the function
    exits with a message.
    """
    from perseus.host.cores import usable_cpus
    from perseus.host.topology import read_topology
    from perseus.models.export_errors import TEMPORARY_ERRORS

    at_once = max(1, len(usable_cpus(read_topology())) // CORES_PER_EXPORT)
    with ProcessPoolExecutor(at_once, get_context("spawn")) as pool:
        exports = {
            name: pool.submit(prepare, job, name, task, work) for name, task in job.models.items()
        }
        for name, running in exports.items():
            try:
                if error := running.result():
                    say(f"  {name}: {error}")
            except TEMPORARY_ERRORS as error:  # for example, missing weights
                pool.shutdown(cancel_futures=True)
                sys.exit(f"{name}: {error}")
            except BrokenProcessPool:
                sys.exit(
                    "an export was killed, probably because this machine has too little memory"
                )


def prepare(job: Job, name: str, task: ExportTask, work: Path) -> str:
    """Export one model, and write it into the repository of every scenario with this model.

    If torch cannot export the model, the function returns the reason, else an empty text. The
    function writes the model as a program of torch.export, the reference responses of torch, and an
    export record. For the table `catalogue`, the record states the architecture and the input size,
    which determine the published accuracy of the model.
    """
    from perseus.host.files import write_json
    from perseus.models.export_errors import export_or_write_error
    from perseus.models.networks import ExportError
    from perseus.models.onnx_export import write_reference
    from perseus.models.repository import write_tenant
    from perseus.models.torch_export import export_program

    folder = work / "models" / name
    shape = write_reference(task, folder / "reference.npz")
    write_json(folder / "check.json", {**shape, "architecture": task.architecture})
    program = folder / "model.pt2"
    check = export_or_write_error(
        lambda: export_program(task, program), program, lambda _: None, ExportError
    )
    for scenario, repository in job.repositories.items():
        for tenant in repository.tenants:
            if tenant.model == name:
                write_tenant(work / "repository" / scenario, tenant, program, shape)
    return str(check.get("export_error", ""))


def begin(cell: str, results: Path, end_s: float, say: Callable[[str], None]) -> bool:
    """Measure a cell in its own process. Return whether the measurement is complete.

    When the monotonic clock shows `end_s`, the function stops the measurement.
    """
    left_s = end_s - time.monotonic()
    if left_s < MIN_CELL_S:
        return False
    say(f"measuring {cell}")
    command = [sys.executable, __file__, str(results), "--cell", cell]
    log_path = results / "work" / "raw" / cell / "cell.log"
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            status = process.wait(left_s)
        except subprocess.TimeoutExpired:
            _end(process)
            say(f"  {cell} is incomplete: the time limit has been reached")
            return False
    if status == 0:
        record = json.loads(log_path.with_name("record.json").read_text())
        say("  " + ": ".join(filter(None, (record["outcome"], record["reason"]))))
    else:
        told = log_path.read_text(errors="replace").strip().splitlines()
        say("  " + (told[-1] if told else f"exit code {status}"))
    return status == 0


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process of a cell with SIGTERM, so that the process can stop its server.

    If the process still runs after SPARE_S / 2 seconds, the function kills the process.
    """
    process.terminate()
    try:
        process.wait(SPARE_S / 2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def measure_cell(job: Job, name: str, results: Path) -> None:
    """Measure the cell `name`, with the same inputs as in the Snakemake rule `measure`."""
    from perseus.host import starter
    from perseus.measurement.cell import Inputs, Outputs
    from perseus.measurement.measure import FAILURES, measure

    starter.end_with_starter(lambda message: print(message, flush=True))
    task = next(each for each in job.cells if each.cell == name)
    work = results.resolve() / "work"
    dedicated, earlier = (
        [work / "raw" / each / "record.json" for each in cells[name]]
        for cells in (job.dedicated, job.earlier)
    )
    carried = job.carried(HERE)
    missing = [path.parent.name for path in [*dedicated, *earlier] if not path.exists()]
    if missing:
        sys.exit(f"not measured, since these cells have no record: {', '.join(missing)}")
    try:
        measure(
            task,
            Inputs(
                repository=work / "repository" / task.scenario,
                references={
                    tenant.name: work / "models" / tenant.model / "reference.npz"
                    for tenant in task.tenants
                },
                dedicated_records=dedicated,
                earlier_records=earlier,
                trace=carried[task.trace.file] if task.trace else None,
                files=[carried[file] for file in task.run.files],
            ),
            Outputs.within(work / "raw" / name),
            lambda message: print(message, flush=True),
        )
    except FAILURES as error:
        sys.exit(str(error))


def summarise(job: Job, results: Path, missed: list[str]) -> None:
    """Write summary.json, the tables as CSV, and the archive of raw results and Parquet tables."""
    from perseus.host.files import write_json
    from perseus.host.parquet import write
    from perseus.results import tables
    from perseus.results.study_results import StudyResults

    raw = results / "work" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    folders = [raw / task.cell for task in job.cells if task.cell not in missed]
    exports = [results / "work" / "models" / name / "check.json" for name in job.models]
    made = tables.make(StudyResults.read(job.tables, folders, [], exports))
    for name, table in made.items():
        if table.num_rows:
            write(table, raw / f"{name}.parquet", results / f"{name}.csv")
    shown = [json.loads((folder / "record.json").read_text()) for folder in folders]
    for record in shown:
        record.pop("posterior_scales", None)  # thousands of numbers, also in raw.tar.xz
    write_json(results / "summary.json", {"cells": shown, "not_measured": missed})
    with tarfile.open(results / "raw.tar.xz", "w:xz", preset=1) as archive:
        archive.add(raw, "raw")


if __name__ == "__main__":
    main()
