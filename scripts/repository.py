"""Write one tenant of a scenario's Triton repository."""

import json
from pathlib import Path

from perseus.host.job import job
from perseus.models.repository import RepositoryError, write_tenant
from perseus.study.tasks.repository import RepositoryTask

task = RepositoryTask.model_validate(snakemake.params.task)

with job(snakemake.log[0], RepositoryError):
    write_tenant(
        Path(snakemake.output.config).parents[1],
        task.tenant,
        task.siblings,
        Path(snakemake.input.model),
        json.loads(Path(snakemake.input.check).read_text()),
    )
