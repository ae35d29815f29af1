"""Print messages after a run: the cells without a result, and what the user can do about them."""

from pathlib import Path

from snakemake.logging import logger

from perseus.host.nothing_to_do import NothingToDo


def rules_of_run():
    """Return the names of the rules of all jobs of this run, even of jobs that need not run."""
    return {job.rule.name for job in workflow.dag.jobs}


def is_of_study():
    """Return whether this run has a job of the study, and not only jobs of a comparison."""
    return not rules_of_run() <= {"compare", "compare_gate"}


def logs_of_run():
    """Return the folders with the logs of the jobs of this run."""
    return [*([LOGS] if is_of_study() else []), *(["logs/compare"] if COMPARED else [])]


def errors_of_jobs():
    """Return the message files of failed jobs, which `host.job` writes beside the logs."""
    return sorted(path for folder in logs_of_run() for path in Path(folder).rglob("*.error"))


def print_failed_cells():
    """Print which cells have no result, and the commands that measure them again."""
    from perseus.results.failed_cells import final_message

    records = [Path(file) for file in files.records(STUDY, CELLS)]
    ceilings = [Path(file) for file in files.ceilings(STUDY)]
    asked = workflow.config_settings
    has_make = IS_ON_THIS_MACHINE and Path.cwd() == HERE.resolve()
    for line in final_message(
        records, ceilings, asked.configfiles, asked.config, has_make=has_make
    ):
        print(line)


# If there is nothing to do, Snakemake calls no hook such as `onsuccess`. A filter of Snakemake's
# log then prints the messages.
if workflow.is_main_process:
    logger.addFilter(NothingToDo(lambda: print_failed_cells() if is_of_study() else None))
