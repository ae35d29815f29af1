"""Write the Triton repository of a scenario."""

from pathlib import Path

from perseus.host.job import job
from perseus.models.repository import Brought, RepositoryError, write_repository
from perseus.models.unmade import UnmadeError
from perseus.study.setting import is_variant
from perseus.study.tasks.repository import RepositoryTask

given = snakemake.input
files = zip(given.models, given.checks, given.references, strict=True)

with job(snakemake.log[0], RepositoryError, UnmadeError):
    task = RepositoryTask.model_validate(snakemake.params.task)
    write_repository(
        Path(snakemake.output[0]),
        task,
        [Brought(*map(Path, of_tenant)) for of_tenant in files],
        is_variant=task.is_survey or is_variant(snakemake.wildcards.scenario),
    )
