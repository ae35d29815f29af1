"""Make the tables of a study, each as Parquet and as CSV."""

from pathlib import Path

from perseus.host import parquet
from perseus.host.job import job
from perseus.results import tables
from perseus.results.study_results import StudyResults
from perseus.study.tasks.tables import TablesTask

with job(snakemake.log[0]):
    results = StudyResults.read(
        TablesTask.model_validate(snakemake.params.task),
        [Path(record).parent for record in snakemake.input.records],
        [Path(path) for path in snakemake.input.ceilings],
    )
    made = tables.make(results)
    for path in map(Path, snakemake.output):
        if path.suffix == ".parquet":
            parquet.write(made[path.stem], path, path.with_suffix(".csv"))
