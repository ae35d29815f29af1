"""Write what stands before the network of one tenant that gets pictures."""

import json
from pathlib import Path

from perseus.host.job import job
from perseus.models.ensemble import write_ensemble
from perseus.models.pictures import Pictures
from perseus.models.repository import RepositoryError
from perseus.study.tasks.ensemble import EnsembleTask

with job(snakemake.log[0], RepositoryError):
    write_ensemble(
        Path(snakemake.output.ensemble).parents[1],
        EnsembleTask.model_validate(snakemake.params.task),
        Pictures.read(Path(snakemake.input.pictures)).preprocessing,
        json.loads(Path(snakemake.input.check).read_text()),
    )
