"""Write the Triton model repository of a scenario (models that share a server)."""

from pathlib import Path

from perseus.host.job import job
from perseus.models.export_errors import NoModelError
from perseus.models.repository import ModelFiles, RepositoryError, write_repository
from perseus.study.setting import is_variant
from perseus.study.tasks.repository import RepositoryTask

given = snakemake.input
files = zip(given.models, given.checks, given.references, strict=True)

with job(snakemake.log[0], RepositoryError, NoModelError):
    task = RepositoryTask.model_validate(snakemake.params.task)
    write_repository(
        Path(snakemake.output[0]),
        task,
        [ModelFiles(*map(Path, of_tenant)) for of_tenant in files],
        is_variant=task.is_survey or is_variant(snakemake.wildcards.scenario),
    )
