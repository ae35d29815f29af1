"""Draw one figure as SVG and PNG, with its data as CSV."""

from pathlib import Path

from perseus.host.job import job
from perseus.report.drawing import draw
from perseus.results.measured import folders
from perseus.study.tasks.figure import FigureTask

with job(snakemake.log[0]):
    draw(
        snakemake.wildcards.figure,
        {Path(path).stem: Path(path) for path in snakemake.input.tables},
        folders(snakemake.input.measured),
        FigureTask.model_validate(snakemake.params.task),
        Path(snakemake.output.svg),
        Path(snakemake.output.png),
        Path(snakemake.output.csv),
    )
