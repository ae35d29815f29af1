"""Write one tenant of a scenario's Triton repository."""

import json
from pathlib import Path

from perseus.host.job import job
from perseus.models.repository import RepositoryError, unfit_batches, write_tenant
from perseus.models.unmade import UnmadeError, require_made, unmake
from perseus.study.setting import is_variant
from perseus.study.tasks.repository import RepositoryTask

task = RepositoryTask.model_validate(snakemake.params.task)

with job(snakemake.log[0], RepositoryError, UnmadeError):
    model = Path(snakemake.input.model)
    check = json.loads(Path(snakemake.input.check).read_text())
    unfit = unfit_batches(task.tenant, check)
    if not is_variant(snakemake.wildcards.scenario):
        require_made(model)
        if unfit:
            raise RepositoryError(unfit)
    write_tenant(
        Path(snakemake.output.config).parents[1],
        task.tenant,
        task.siblings,
        model,
        check,
    )
    if unfit:  # a setting of a grid ends as a row with this reason
        unmake(Path(snakemake.output.model), unfit)
