"""Convert an exported CNN to another precision and measure what that changes."""

from pathlib import Path

from perseus.host.files import write_json
from perseus.host.job import job
from perseus.models.networks import ExportError
from perseus.models.onnx_precision import convert

with job(snakemake.log[0], ExportError):
    check = convert(
        snakemake.wildcards.precision,
        Path(snakemake.input.model),
        Path(snakemake.input.reference),
        Path(snakemake.output.model),
    )
    write_json(Path(snakemake.output.check), check)
