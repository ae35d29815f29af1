"""Export one CNN as a program of torch.export and prove that it computes the same."""

from pathlib import Path

from perseus.entry import job
from perseus.export import ModelSpec
from perseus.files import write_json
from perseus.networks import ExportError
from perseus.program import export_program

with job(snakemake.log[0], ExportError):
    check = export_program(ModelSpec(**snakemake.params.slice), Path(snakemake.output.model))
    write_json(Path(snakemake.output.check), check)
