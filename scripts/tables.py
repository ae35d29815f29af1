"""Make the tables of a study, each as Parquet and as CSV."""

from pathlib import Path

from perseus.host import parquet as schema
from perseus.host.job import job
from perseus.results import tables

with job(snakemake.log[0]):
    records = [Path(path) for path in snakemake.input.records]
    windows = [Path(path) for path in snakemake.input.windows]
    ceilings = [Path(path) for path in snakemake.input.ceilings]
    made = tables.make(tables.read(records, windows, ceilings), snakemake.params.slice)
    for path in map(Path, snakemake.output):
        if path.suffix == ".parquet":
            schema.write(made[path.stem], path, path.with_suffix(".csv"))
