"""Write the report of a study."""

from pathlib import Path

from perseus.host.job import job
from perseus.report import page
from perseus.results.measured import folders
from perseus.study.raw_files import RECORD
from perseus.study.tasks.report import ReportTask

with job(snakemake.log[0]):
    page.write(
        {Path(path).stem: Path(path) for path in snakemake.input.tables},
        [Path(path) for path in snakemake.input.figures],
        [folder / RECORD for folder in folders(snakemake.input.measured)],
        ReportTask.model_validate(snakemake.params.task),
        Path(snakemake.output[0]),
    )
