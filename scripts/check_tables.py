"""Check each table of a study against the rules of its columns and against the other tables."""

from pathlib import Path

from perseus.host.files import write_json
from perseus.host.job import job
from perseus.results.check import ContradictionError, check
from perseus.study.tasks.check import CheckTask

with job(snakemake.log[0], ContradictionError):
    task = CheckTask.model_validate(snakemake.params.task)
    folder = Path(snakemake.input[0]).parent
    write_json(Path(snakemake.output[0]), check(folder, task.images_per_request))
