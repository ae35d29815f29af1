"""Prepare an ONNX file of the user for Triton, and check that its responses do not change."""

from pathlib import Path

from perseus.host.files import write_json
from perseus.host.job import job
from perseus.models.export_errors import TEMPORARY_ERRORS
from perseus.models.networks import ExportError
from perseus.models.own_onnx import take_onnx
from perseus.study.tasks.own_onnx import OwnOnnxTask

with job(snakemake.log[0], ExportError, *TEMPORARY_ERRORS) as say:
    check = take_onnx(
        OwnOnnxTask.model_validate(snakemake.params.task),
        Path(snakemake.input.model),
        Path(snakemake.output.model),
        Path(snakemake.output.reference),
    )
    for note in check["notes"]:
        say(note)
    write_json(Path(snakemake.output.check), check)
