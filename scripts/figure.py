"""Draw one figure as SVG and PNG."""

from pathlib import Path

from perseus.host.job import job
from perseus.report.figures import draw

with job(snakemake.log[0]):
    draw(
        snakemake.wildcards.figure,
        {Path(path).stem: Path(path) for path in snakemake.input.tables},
        list(dict.fromkeys(Path(path).parent for path in snakemake.input.raw)),
        snakemake.params.slice,
        Path(snakemake.output.svg),
        Path(snakemake.output.png),
    )
