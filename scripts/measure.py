"""Measure one cell on a server of its own."""

from pathlib import Path

from perseus.host.job import job
from perseus.measurement.cell import Inputs, Outputs
from perseus.measurement.measure import FAILURES, measure
from perseus.measurement.progress.listeners import listeners
from perseus.study.tasks.measure import MeasureTask

task = MeasureTask.model_validate(snakemake.params.task)
references = map(Path, snakemake.input.references)

with job(snakemake.log[0], *FAILURES) as say, listeners(snakemake.log[0]) as tell:
    measure(
        task,
        Inputs(
            repository=next((Path(path).parents[1] for path in snakemake.input.repository), None),
            references=dict(zip(task.brought, references, strict=True)),
            dedicated_records=[Path(record) for record in snakemake.input.dedicated],
            earlier_records=[Path(record) for record in snakemake.input.earlier],
            trace=next((Path(trace) for trace in snakemake.input.trace), None),
            files=[Path(file) for file in snakemake.input.files],
            copies_records=[Path(record) for record in snakemake.input.copies],
            copies_dedicated_records=[Path(file) for file in snakemake.input.copies_dedicated],
            checks=[Path(check) for check in snakemake.input.checks],
        ),
        Outputs(**{name: Path(path) for name, path in snakemake.output.items()}),
        say,
        tell,
    )
