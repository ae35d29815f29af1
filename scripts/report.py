"""Write the report of a study."""

from pathlib import Path

from perseus.host.job import job
from perseus.report import page

with job(snakemake.log[0]):
    page.write(
        {Path(path).stem: Path(path) for path in snakemake.input.tables},
        [Path(path) for path in snakemake.input.figures],
        [Path(path) for path in snakemake.input.records],
        Path(snakemake.output[0]),
    )
