"""Measure one cell on a server of its own."""

from pathlib import Path

from perseus.host.cores import TooFewCoresError
from perseus.host.gpu import GpuError
from perseus.host.job import job
from perseus.measurement.cell import Inputs, Outputs, measure
from perseus.serving.failures import ServerError
from perseus.study.traces import TraceError
from perseus.traffic.client import ClientError
from perseus.traffic.route import RouteError
from perseus.traffic.verify import VerificationError

EXPECTED = (
    ServerError,
    VerificationError,
    TooFewCoresError,
    GpuError,
    ClientError,
    RouteError,
    TraceError,
)

cell = snakemake.params.slice
names = [tenant["name"] for tenant in cell["tenants"]]

with job(snakemake.log[0], *EXPECTED) as say:
    measure(
        cell,
        Inputs(
            repository=Path(snakemake.input.repository[0]).parents[1],
            references=dict(zip(names, map(Path, snakemake.input.references), strict=True)),
            dedicated_records=[Path(record) for record in snakemake.input.dedicated],
            trace=next((Path(trace) for trace in snakemake.input.trace), None),
        ),
        Outputs(**{name: Path(path) for name, path in snakemake.output.items()}),
        say,
    )
