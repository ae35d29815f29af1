"""Measure the client ceiling for one server: the highest rate that the client sends on schedule."""

from pathlib import Path

from perseus.host.cores import TooFewCoresError
from perseus.host.exclusive import LockError
from perseus.host.job import job
from perseus.measurement.ceiling import measure, shapes_of
from perseus.serving.failures import ServerError
from perseus.study.tasks.ceiling import CeilingTask
from perseus.study.trace_files import TraceError
from perseus.traffic.client import ClientError
from perseus.traffic.route import RouteError

task = CeilingTask.model_validate(snakemake.params.task)

EXPECTED = ServerError, ClientError, RouteError, TraceError, TooFewCoresError, LockError

with job(snakemake.log[0], *EXPECTED) as say:
    measure(
        task,
        shapes_of(task, list(map(Path, snakemake.input.checks))),
        next((Path(trace) for trace in snakemake.input.trace), None),
        Path(snakemake.output[0]),
        Path(snakemake.log[0]).with_suffix(".server.log"),
        say,
    )
