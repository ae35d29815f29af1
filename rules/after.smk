"""What is said after a run: which cells of the study have no answer, and what to do."""

from pathlib import Path

from snakemake.logging import logger

from perseus.host.nothing_to_do import NothingToDo


def is_of_study():
    """Whether a job of this run is of the study, and not of a comparison."""
    return any(job.rule.name not in ("compare", "compare_gate") for job in workflow.dag.jobs)


def has_report():
    """Whether this run is for the report, and not for a part of what it is made of."""
    return any(job.rule.name == "report" for job in workflow.dag.jobs)


def logs_of_run():
    """The folders of the logs of this run's jobs."""
    return [*([LOGS] if is_of_study() else []), *(["logs/compare"] if COMPARED else [])]


def errors_of_jobs():
    """What jobs that failed say to a person, as `host.job` leaves it beside their logs."""
    return sorted(path for folder in logs_of_run() for path in Path(folder).rglob("*.error"))


def print_failed_cells():
    from perseus.results.failed_cells import final_message

    records = [Path(file) for file in files.records(STUDY, CELLS)]
    ceilings = [Path(file) for file in files.ceilings(STUDY)]
    asked = workflow.config_settings
    for line in final_message(records, ceilings, asked.configfiles, asked.config):
        print(line)


# A run that finds nothing to do calls no hook.
if workflow.is_main_process:
    logger.addFilter(NothingToDo(lambda: print_failed_cells() if is_of_study() else None))
