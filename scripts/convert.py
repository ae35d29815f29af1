"""Convert an exported CNN to another precision and measure what that changes."""

import json
from pathlib import Path

from perseus.host.files import write_json
from perseus.host.job import job
from perseus.models.networks import ExportError
from perseus.models.onnx_precision import convert
from perseus.models.unmade import OF_THE_MACHINE, made

with job(snakemake.log[0], *OF_THE_MACHINE) as say:
    converted = Path(snakemake.output.model)
    check = made(
        lambda: convert(
            snakemake.wildcards.precision,
            Path(snakemake.input.model),
            Path(snakemake.input.reference),
            converted,
            json.loads(Path(snakemake.input.check).read_text())["batches"],
        ),
        converted,
        say,
        ExportError,
    )
    write_json(Path(snakemake.output.check), check)
