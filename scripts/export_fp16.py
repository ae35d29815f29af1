"""Convert an exported CNN to fp16 and measure what that changes."""

from pathlib import Path

from perseus.entry import job
from perseus.files import write_json
from perseus.fp16 import convert
from perseus.networks import ExportError

with job(snakemake.log[0], ExportError):
    check = convert(
        Path(snakemake.input.model),
        Path(snakemake.input.reference),
        Path(snakemake.output.model),
    )
    write_json(Path(snakemake.output.check), check)
