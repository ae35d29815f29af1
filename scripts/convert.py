"""Convert the ONNX file of a CNN to another numeric precision, and check the changed responses."""

from pathlib import Path
from typing import Any

from perseus.host.files import write_json
from perseus.host.job import job
from perseus.models.export_errors import TEMPORARY_ERRORS, export_error, export_or_write_error
from perseus.models.networks import ExportError
from perseus.models.onnx_precision import convert

exported, converted = Path(snakemake.input.model), Path(snakemake.output.model)


def conversion() -> dict[str, Any]:
    """Convert the ONNX file. Raises ExportError if the file contains an export error."""
    if reason := export_error(exported):
        raise ExportError(reason)
    reference = Path(snakemake.input.reference)
    return convert(snakemake.wildcards.precision, exported, reference, converted)


with job(snakemake.log[0], *TEMPORARY_ERRORS) as say:
    check = export_or_write_error(conversion, converted, say, ExportError)
    write_json(Path(snakemake.output.check), check)
