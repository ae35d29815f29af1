"""Write one tenant of a scenario's Triton repository."""

import json
from pathlib import Path

from perseus.host.job import job
from perseus.models.repository import RepositoryError, TenantSpec, write_tenant

with job(snakemake.log[0], RepositoryError):
    write_tenant(
        Path(snakemake.output.config).parents[1],
        TenantSpec(**snakemake.params.slice["tenant"]),
        snakemake.params.slice["siblings"],
        Path(snakemake.input.model),
        json.loads(Path(snakemake.input.check).read_text()),
    )
