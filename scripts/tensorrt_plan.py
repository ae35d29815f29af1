"""Build the TensorRT plan of one tenant."""

import json
from pathlib import Path

from perseus.host.files import write_json
from perseus.host.gpu import GpuError
from perseus.host.job import job
from perseus.models.tensorrt_plan import TensorRtError, build
from perseus.study.tasks.tensorrt import TensorRtTask

with job(snakemake.log[0], GpuError, TensorRtError):
    plan = Path(snakemake.output.model)
    record = build(
        TensorRtTask.model_validate(snakemake.params.task),
        Path(snakemake.input.model),
        json.loads(Path(snakemake.input.check).read_text()),
        plan,
        plan.parents[1] / "timing.cache",
        Path(snakemake.log[0]).with_suffix(".trtexec.log"),
    )
    write_json(Path(snakemake.output.record), record)
