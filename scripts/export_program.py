"""Export one CNN as a program of torch.export, and check the responses of the program."""

from pathlib import Path

from perseus.host.files import write_json
from perseus.host.job import job
from perseus.models.export_errors import TEMPORARY_ERRORS, export_or_write_error
from perseus.models.networks import ExportError
from perseus.models.torch_export import export_program
from perseus.study.tasks.export import ExportTask

with job(snakemake.log[0], *TEMPORARY_ERRORS) as say:
    task = ExportTask.model_validate(snakemake.params.task)
    program = Path(snakemake.output.model)
    check = export_or_write_error(lambda: export_program(task, program), program, say, ExportError)
    write_json(Path(snakemake.output.check), check)
