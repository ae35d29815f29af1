"""Draw one figure as SVG and PNG."""

from pathlib import Path

from perseus.entry import job
from perseus.figures import draw

with job(snakemake.log[0]):
    draw(
        snakemake.wildcards.figure,
        {Path(path).stem: Path(path) for path in snakemake.input.tables},
        list(dict.fromkeys(Path(path).parent for path in snakemake.input.raw)),
        snakemake.params.slice,
        Path(snakemake.output.svg),
        Path(snakemake.output.png),
    )
