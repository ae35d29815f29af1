"""Make the tables of a study, and write each table as Parquet and as CSV."""

from pathlib import Path

from perseus.host.job import job
from perseus.results import tables
from perseus.results.measured import folders
from perseus.results.study_results import StudyResults
from perseus.study.tasks.tables import TablesTask

with job(snakemake.log[0]):
    results = StudyResults.read(
        TablesTask.model_validate(snakemake.params.task),
        folders(snakemake.input.measured),
        [Path(path) for path in snakemake.input.ceilings],
        [Path(path) for path in snakemake.input.exports],
    )
    tables.write(tables.make(results), Path(snakemake.output[0]).parent)
