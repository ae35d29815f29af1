"""Convert an exported CNN to another precision and measure what that changes."""

from pathlib import Path
from typing import Any

from perseus.host.files import write_json
from perseus.host.job import job
from perseus.models.networks import ExportError
from perseus.models.onnx_precision import convert
from perseus.models.unmade import OF_THE_MACHINE, made, why_unmade

exported, converted = Path(snakemake.input.model), Path(snakemake.output.model)


def conversion() -> dict[str, Any]:
    """Of what was exported, if it was."""
    if reason := why_unmade(exported):
        raise ExportError(reason)
    reference = Path(snakemake.input.reference)
    return convert(snakemake.wildcards.precision, exported, reference, converted)


with job(snakemake.log[0], *OF_THE_MACHINE) as say:
    check = made(conversion, converted, say, ExportError)
    write_json(Path(snakemake.output.check), check)
