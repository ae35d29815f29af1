"""Log the results of a study to an MLflow tracking store."""

from pathlib import Path

from perseus.host.files import write_json
from perseus.host.job import job
from perseus.report.tracking import TrackingError, track
from perseus.study.tasks.track import TrackTask

with job(snakemake.log[0], TrackingError) as say:
    task = TrackTask.model_validate(snakemake.params.task)
    tables = {Path(path).stem: Path(path) for path in snakemake.input.tables}
    ids = track(task, tables, [Path(path) for path in snakemake.input.artifacts])
    write_json(Path(snakemake.output[0]), {"uri": task.uri, **ids})
    say(f"run {ids['run_id']} of {task.uri}")
