"""Build the TensorRT plan of one tenant (a model on a server)."""

import json
from pathlib import Path

from perseus.host.exclusive import LockError
from perseus.host.files import write_json
from perseus.host.gpu import GpuError
from perseus.host.job import job
from perseus.host.signals import terminate_as_exit
from perseus.models.export_errors import NoModelError, export_or_write_error, require_model
from perseus.models.tensorrt_plan import NoPlanError, TensorRtError, build, no_measurement_running
from perseus.study.tasks.tensorrt import TensorRtTask

onnx, plan = Path(snakemake.input.model), Path(snakemake.output.model)


def planned():
    """Build the TensorRT plan, and return the record of the build."""
    require_model(onnx)
    task = TensorRtTask.model_validate(snakemake.params.task)
    with no_measurement_running(task, f"the plan {task.server}/{plan.parent.name}", say):
        return build(
            task,
            onnx,
            json.loads(Path(snakemake.input.check).read_text()),
            plan,
            plan.parents[1] / "timing.cache",
            Path(snakemake.log[0]).with_suffix(".trtexec.log"),
        )


with job(snakemake.log[0], GpuError, TensorRtError, LockError) as say, terminate_as_exit():
    record = export_or_write_error(planned, plan, say, NoPlanError, NoModelError)
    write_json(Path(snakemake.output.record), record)
