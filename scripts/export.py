"""Export one CNN to ONNX and prove that it computes the same."""

from pathlib import Path

from perseus.host.files import write_json
from perseus.host.job import job
from perseus.models.networks import ExportError
from perseus.models.onnx_export import export_model
from perseus.study.tasks.export import ExportTask

with job(snakemake.log[0], ExportError):
    check = export_model(
        ExportTask.model_validate(snakemake.params.task),
        Path(snakemake.output.model),
        Path(snakemake.output.reference),
    )
    write_json(Path(snakemake.output.check), check)
