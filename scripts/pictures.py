"""Compute the reference responses of one CNN to image files.

Perseus uses these responses for tenants (models on a server) whose requests are image files.
"""

from pathlib import Path

from perseus.host.job import job
from perseus.models.export_errors import TEMPORARY_ERRORS
from perseus.models.networks import ExportError
from perseus.models.picture_export import export_pictures
from perseus.study.tasks.export import ExportTask

with job(snakemake.log[0], ExportError, *TEMPORARY_ERRORS):
    export_pictures(ExportTask.model_validate(snakemake.params.task), Path(snakemake.output[0]))
