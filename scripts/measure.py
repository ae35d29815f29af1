"""Measure one cell (one repeat of one experiment of a scenario)."""

from pathlib import Path

from perseus.host.files import arrived
from perseus.host.job import job
from perseus.measurement.cell import Inputs, Outputs
from perseus.measurement.measure import FAILURES, measure
from perseus.measurement.progress.listeners import listeners
from perseus.measurement.reference_files import reference_files
from perseus.study.raw_files import RECORD
from perseus.study.tasks.measure import MeasureTask

task = MeasureTask.model_validate(snakemake.params.task)


def files(what: str) -> list[Path]:
    """Return the paths of the input `what` of the job; empty if the job has no such input."""
    return [Path(path) for path in snakemake.input.get(what, [])]


def records(what: str) -> list[Path]:
    """Return the paths of the records in the input `what` of the job.

    A path of the input is the folder of a cell, or a file with the records of all repeats of a
    dedicated peak.
    """
    return [arrived(path / RECORD) if path.is_dir() else path for path in files(what)]


repository = next(iter(files("repository")), None)

with job(snakemake.log[0], *FAILURES) as say, listeners(snakemake.log[0], say) as tell:
    measure(
        task,
        Inputs(
            repository=repository,
            references=reference_files(repository, task) if repository else {},
            dedicated_records=records("dedicated"),
            earlier_records=records("earlier"),
            trace=next(iter(files("trace")), None),
            files=files("files"),
            labelled=next(iter(files("labelled")), None),
            copies_records=records("copies"),
            copies_dedicated_records=records("copies_dedicated"),
            checks=files("checks"),
        ),
        Outputs.within(Path(snakemake.output[0])),
        say,
        tell,
    )
