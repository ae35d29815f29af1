"""Export one CNN of torchvision to ONNX, and check that the ONNX file responds as torch does."""

from functools import partial
from pathlib import Path

from perseus.host.files import write_json
from perseus.host.job import job
from perseus.models.export_errors import TEMPORARY_ERRORS
from perseus.models.networks import ExportError
from perseus.models.onnx_export import export_model, surveyed_export
from perseus.study.tasks.export import ExportTask

with job(snakemake.log[0], ExportError, *TEMPORARY_ERRORS) as say:
    task = ExportTask.model_validate(snakemake.params.task)
    export = partial(surveyed_export, say) if task.is_surveyed else export_model
    check = export(task, Path(snakemake.output.model), Path(snakemake.output.reference))
    write_json(Path(snakemake.output.check), check)
