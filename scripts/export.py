"""Export one CNN to ONNX and prove that it computes the same."""

from pathlib import Path

from perseus.entry import job
from perseus.export import ModelSpec, export_model
from perseus.files import write_json
from perseus.networks import ExportError

with job(snakemake.log[0], ExportError):
    check = export_model(
        ModelSpec(**snakemake.params.slice),
        Path(snakemake.output.model),
        Path(snakemake.output.reference),
    )
    write_json(Path(snakemake.output.check), check)
