"""Write the labelled images with which Perseus measures the accuracy of one CNN."""

from pathlib import Path

from perseus.host.job import job
from perseus.models.networks import ExportError
from perseus.models.picture_export import write_labelled
from perseus.study.tasks.labelled import LabelledTask

with job(snakemake.log[0], ExportError):
    write_labelled(
        LabelledTask.model_validate(snakemake.params.task),
        Path(snakemake.input.reference),
        Path(snakemake.output[0]),
    )
