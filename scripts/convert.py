"""Convert an exported CNN to another precision and measure what that changes."""

from pathlib import Path

from perseus.convert import convert
from perseus.entry import job
from perseus.files import write_json
from perseus.networks import ExportError

with job(snakemake.log[0], ExportError):
    check = convert(
        snakemake.wildcards.precision,
        Path(snakemake.input.model),
        Path(snakemake.input.reference),
        Path(snakemake.output.model),
    )
    write_json(Path(snakemake.output.check), check)
