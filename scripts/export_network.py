"""Export a network of timm, or a detection or segmentation network of torchvision, to ONNX.

The job fails if the ONNX file does not give the same responses as torch, up to rounding.
"""

from pathlib import Path

from perseus.host.files import write_json
from perseus.host.job import job
from perseus.models.export_errors import TEMPORARY_ERRORS
from perseus.models.network_export import export_network
from perseus.models.networks import ExportError
from perseus.study.tasks.network import NetworkTask

with job(snakemake.log[0], ExportError, *TEMPORARY_ERRORS) as say:
    check = export_network(
        NetworkTask.model_validate(snakemake.params.task),
        Path(snakemake.output.model),
        Path(snakemake.output.reference),
    )
    for note in check["notes"]:
        say(note)
    write_json(Path(snakemake.output.check), check)
