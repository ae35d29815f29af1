"""Before a run, check the files of earlier runs, this machine, and the files of the user."""

import atexit
import os
import shlex
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

from snakemake.caching.local import OutputFileCache
from snakemake.exceptions import WorkflowError
from snakemake.io import IOFile
from snakemake.logging import logger
from snakemake.persistence.file import FilePersistence

from perseus.host import (
    cores,
    disk_space,
    folder_outputs,
    gpu,
    orphans,
    run_output,
    starter,
    truncated_files,
    workflow_lock,
)
from perseus.host.interruption import Interruption
from perseus.measurement.moved_images import measured_with_another
from perseus.measurement.progress.overview import AloneCell, RunPlan, write_plan
from perseus.models import own_files
from perseus.results import measured
from perseus.serving import triton_wheel
from perseus.serving.failures import ServerError
from perseus.study.launchers import LAUNCHERS
from perseus.study.raw_files import RAW

# Shorten the output of Snakemake, except in a dry run and in a workflow that uses this workflow.
IS_OWN_RUN = Path(workflow.main_snakefile).parent == HERE and workflow.is_main_process
if IS_OWN_RUN and not (workflow.output_settings.dryrun or workflow.output_settings.verbose):
    run_output.shorten(logger)

if workflow.is_main_process and not workflow.output_settings.dryrun:
    try:
        tempfile.TemporaryFile(dir=Path.cwd()).close()
    except OSError as error:
        raise WorkflowError(
            f"The results go into the working directory, but {Path.cwd()} accepts no files"
            f" ({error.strerror}). Choose another folder:"
            f" snakemake -s {shlex.quote(workflow.main_snakefile)} -d FOLDER all"
        ) from None

IS_ALONE = workflow.is_main_process and not workflow_lock.is_live(Path.cwd())
if workflow.is_main_process and workflow_lock.remove_dead(Path.cwd()):
    print(
        "An earlier run of Snakemake locked this folder and was killed: its lock is removed.",
        file=sys.stderr,
    )
    if not IS_ON_THIS_MACHINE:
        print(
            "Cancel the jobs of the killed run on the cluster: this run submits them again.",
            file=sys.stderr,
        )

# On a full disk, Snakemake cannot lock the folder, and ends before it calls a hook. Therefore an
# exit handler reports a full disk.
if workflow.is_main_process:
    atexit.register(disk_space.report_if_full, Path.cwd())

# If Snakemake ends or is killed, its jobs end, and the kernel releases the lock of the working
# directory.
starter.announce()
INTERRUPTION = Interruption()
logger.addFilter(INTERRUPTION)
workflow_lock.hold(Path.cwd())


def delete_own_locks(persistence):
    """Delete the lock files of this run only. Snakemake 9.27.1 would also delete the lock files of
    all other runs, and the folder of the lock files, which another run may need as soon as it has
    planned its jobs."""
    for path in persistence._lockfile.values():
        Path(path).unlink(missing_ok=True)
    persistence._lockfile.clear()


def delete_all_locks(persistence):
    """Delete the lock files of all runs (`snakemake --unlock`)."""
    for path in Path(persistence._lockdir).glob("*.lock"):
        path.unlink(missing_ok=True)


FilePersistence._delete_locks = delete_own_locks
FilePersistence.cleanup_locks = delete_all_locks


def make_again(paths):
    """For each of these files, mark the output that contains the file as unfinished, so that
    Snakemake makes the output again."""
    if paths:
        outputs = dict.fromkeys(files.output_with(STUDY, path) for path in paths)
        made = SimpleNamespace(output=[IOFile(path) for path in outputs])
        FilePersistence(nolock=True).started(made)


def make_truncated_files_again(places):
    """Find truncated files in `places` (files and folders), and let Snakemake make them again."""
    cut = truncated_files.find(places) if workflow.is_main_process else []
    # Ignore truncated records of single files in an output folder. Only earlier versions of Perseus
    # wrote such records, and no job needs them.
    of_cut_records = [
        path
        for path in (truncated_files.with_truncated_record(Path.cwd(), places) if IS_ALONE else [])
        if files.output_with(STUDY, path) == path
    ]
    for path in cut:
        print(truncated_files.TRUNCATED.format(path), file=sys.stderr)
    for path in of_cut_records:
        print(
            f"Snakemake's record of {path} is truncated: Snakemake makes the file again.",
            file=sys.stderr,
        )
    make_again(cut + of_cut_records)


def make_again_what_is_lost():
    """Mark incomplete outputs, so that Snakemake makes them again.

    An output is incomplete in three cases:

    - A folder of raw results lacks a file.
    - An output folder lacks the time stamp that each finished job writes.
    - A list of measured cells names a cell without results. Snakemake measures this cell again only
      if the list is marked.

    A running or interrupted job has already marked its own folder, so this function leaves out
    marked folders.
    """
    marked = folder_outputs.unfinished(Path.cwd())
    raw, repositories = (
        [folder for folder in folders if folder not in marked]
        for folders in (files.raw(STUDY, CELLS), files.repositories(STUDY))
    )
    lost = list(folder_outputs.files_lost(raw, RAW))
    for path in lost:
        print(f"{path} is missing: Snakemake makes it again.", file=sys.stderr)
    incomplete = list(folder_outputs.files_lost([*raw, *repositories], [folder_outputs.TIME_STAMP]))
    if incomplete:
        print(
            f"{len(incomplete)} folders in {RESULTS}/raw and {REPOSITORY} have no file"
            f" {folder_outputs.TIME_STAMP}, because an earlier version of Perseus wrote the folders"
            " or because a copy left out this file: Snakemake makes these folders again.",
            file=sys.stderr,
        )
    gone = [path for path in files.measured(STUDY) if measured.has_lost_a_cell(Path(path))]
    make_again([*lost, *incomplete, *gone])


make_truncated_files_again([RESULTS, f"{RESULTS}.tar.gz", REPOSITORY])
if workflow.is_main_process:
    make_again_what_is_lost()
for server in STUDY.servers.values() if IS_ON_THIS_MACHINE else ():
    if LAUNCHERS[server.launcher].container:
        of_server = [cell for cell in CELLS if cell.scenario.server == server]
        moved = measured_with_another(server, files.records(STUDY, of_server))
        for path in moved:
            print(
                f"The name {server.image} now stands for another container image than in the"
                f" measurement {path}: Snakemake measures this cell again.",
                file=sys.stderr,
            )
        # A TensorRT plan that is newer than the measurement was built with the new image.
        newest = max((Path(path).stat().st_mtime for path in moved), default=0)
        plans = {
            plan
            for cell in of_server
            for plan in files.plans(STUDY, cell.scenario)
            if Path(plan).exists() and Path(plan).stat().st_mtime < newest
        }
        make_again([*moved, *plans])


def require_cacheable(names):
    """Stop if the option `--cache` names rules without `cache:`.

    The outputs of these rules depend on the host, but Snakemake hashes only the inputs: it would
    reuse measurements of another host. If another workflow uses this workflow as a module, the
    function does not check the rules of the other workflow.
    """
    own = [rule for rule in workflow.rules if Path(rule.snakefile).is_relative_to(HERE)]
    measured = {rule.name for rule in own if not rule.cache.output}
    if refused := [name for name in names if name in measured]:
        raise WorkflowError(
            f"--cache {' '.join(refused)}: measurements depend on the host and the time, so they"
            " cannot come from a cache. To take only exports from the cache, use --cache without"
            " names of rules"
        )


async def are_whole(cache, job, exist=OutputFileCache.exists):
    """Return whether all outputs of a job are in the cache and complete. If a cached output is
    truncated, print a message and return false, so that Snakemake runs the job."""
    if not await exist(cache, job):
        return False
    pairs = await cache.get_outputfiles_and_cachefiles(job)
    cut = [cached for _, cached in pairs if truncated_files.is_truncated(str(cached))]
    for path in cut:
        print(truncated_files.TRUNCATED.format(path), file=sys.stderr)
    return not cut


async def fetch_whole(cache, job, fetch=OutputFileCache.fetch):
    """Fetch all outputs of a job from the cache. If one of them is missing or truncated, fetch none
    and raise the exception of a cache miss."""
    if not await cache.exists(job):
        cache.raise_cache_miss_exception(job)
    await fetch(cache, job)


# `are_whole` need not delete a truncated file: the new output overwrites the file in the cache.
OutputFileCache.exists, OutputFileCache.fetch = are_whole, fetch_whole


def require_machine(jobs):
    """Stop if this machine lacks the cores, the GPUs or the Triton folder that the jobs need."""
    jobs = list(jobs)  # Snakemake gives an iterator
    cells = {job.wildcards.cell for job in jobs if job.rule.name == "measure"}
    ceilings = [job.wildcards.server for job in jobs if job.rule.name == "ceiling"]
    with_ceiling = {each.name for name in ceilings for each in STUDY.ceilings[name]}
    for server in {STUDY.cells[cell].scenario.server for cell in cells}:
        try:
            gpu.require(server.gpus_here)
            if not LAUNCHERS[server.launcher].elsewhere:
                cores.split_cores(server.cores)
            elif server.name in with_ceiling:
                cores.split_client_cores(server.remote.client_cores)
            if server.launcher == "embedded":
                triton_wheel.require_plain(orphans.place())
        except (gpu.GpuError, cores.TooFewCoresError, ServerError) as error:
            raise WorkflowError(f"Server {server.name!r}: {error}") from None


def require_figures(jobs):
    """Stop before the measurements if the figures or the report could not be made."""
    if {"measure", "figure"} <= {job.rule.name for job in jobs}:
        from perseus.report.rehearsal import rehearse

        try:
            rehearse(planning.figure_task(STUDY))
        except Exception as error:
            raise WorkflowError(
                "Figures and report cannot be made with this Python environment, so nothing is"
                f" measured: {type(error).__name__}: {error}. Install requirements.txt again."
            ) from error


def require_track(jobs):
    """Stop before the measurements if the tracking store cannot accept the results."""
    if any(job.rule.name == "track" for job in jobs):
        if TRACK_TASK is None:
            raise WorkflowError(
                f"Study {STUDY.name!r} has no tracking store: add `track: {{mlflow: URI}}` to its"
                " configuration"
            )
        from perseus.report.tracking import TrackingError, require_store

        try:
            require_store(TRACK_TASK.uri, TRACK_TASK.study)
        except TrackingError as error:
            raise WorkflowError(str(error)) from None


def alone_cells():
    """Yield the cells that search a dedicated peak, each with its tenant and server. The live view
    lists the peaks of these cells."""
    for cell in CELLS:
        if cell.run.kind == "peak" and len(cell.scenario.tenants) == 1:
            tenant, server = cell.scenario.tenants[0].name, cell.scenario.server.name
            yield AloneCell(cell=cell.id, tenant=tenant, server=server)


MAX_GRIDS_LISTED = 6


def print_cells_to_measure(jobs):
    """Print the number of cells that these jobs measure, and the duration of the load."""
    cells = [job.wildcards.cell for job in jobs if job.rule.name == "measure"]
    if not cells:
        done = sum(map(os.path.exists, files.records(STUDY, CELLS)))
        if done == len(CELLS):
            print(f"Study {STUDY.name!r}: all {done} cells are measured.")
        else:
            print(
                f"Study {STUDY.name!r}: {done} of {len(CELLS)} cells are measured; this run"
                " measures none."
            )
        return
    from perseus.measurement.experiments import procedure

    tasks = {cell: MEASURE_TASKS.task(cell) for cell in cells}
    load_s = {cell: procedure(task.run.kind).load_s(task) for cell, task in tasks.items()}
    about_s, most_s = map(sum, zip(*load_s.values()))
    write_plan(
        Path(LOGS),
        RunPlan(
            started_s=time.time(),
            load_s={cell: about for cell, (about, _) in load_s.items()},
            slots={cell: slots.slot(STUDY.cells[cell]) for cell in cells},
            raw=f"{RESULTS}/raw",
            alone=tuple(alone_cells()),
        ),
    )
    print(
        f"Study {STUDY.name!r}: {len(cells)} of {len(CELLS)} cells to measure, about"
        f" {about_s / 60:.0f} min of load, at most {most_s / 60:.0f} min."
        " If a cell has a temporary failure, Perseus measures it a second time."
    )


EXPORTS = ("export", "export_program", "export_network", "own_onnx")


def require_own_files(jobs):
    """Stop before the run if an export job has a file of weights or an ONNX file that Perseus
    cannot export."""
    exports = [job for job in jobs if job.rule.name in EXPORTS]
    names = sorted({job.wildcards.model for job in exports})
    models = [(STUDY.models[name], STUDY.images[name]) for name in names]
    if problems := list(own_files.problems(models)):
        raise WorkflowError("\n".join(problems))
