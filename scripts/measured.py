"""Write a list of the measured cells of one kind of experiment."""

from pathlib import Path

from perseus.host.job import job
from perseus.results import measured

with job(snakemake.log[0]):
    measured.write(Path(snakemake.output[0]), [Path(cell) for cell in snakemake.input])
