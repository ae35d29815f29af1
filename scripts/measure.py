"""Measure one cell on a server of its own."""

from pathlib import Path

from perseus.arrivals import TraceError
from perseus.client import ClientError
from perseus.entry import job
from perseus.gpu import GpuError
from perseus.host import TooFewCoresError
from perseus.measure import Inputs, Outputs, measure
from perseus.route import RouteError
from perseus.server_failures import ServerError
from perseus.verify import VerificationError

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
