"""Cells that are being measured, and an exporter of their metrics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread

from perseus.host.identity import identity
from perseus.measurement.progress.exporter import Exporter
from perseus.measurement.progress.file import progress_file
from perseus.measurement.progress.state import Progress, TenantProgress

MEASURED = Progress(
    process=identity(),
    study="default",
    cell="cpu1.a-b.mix-1-1.r1",
    server="cpu1",
    kind="peak",
    attempt=2,
    told_s=1000.0,
    end_s=1090.0,
    metrics_url="http://127.0.0.1:12345/metrics",
    phase="warm_up",
    windows={"pass": 3, "invalid": 1},
    tenants=(
        TenantProgress(
            name="a",
            percentile=99.9,
            sla_ms=50.0,
            offered_rps=40.0,
            answered_rps=30.0,
            latency_ms=61.5,
            send_lag_ms=2.4,
            send_lag_limit_ms=1.0,
            verdict="fail",
            passed_rps=36.0,
            failed_rps=40.0,
        ),
        TenantProgress(name="b", percentile=95.0, sla_ms=80.0),
    ),
)
BEGUN = MEASURED.model_copy(
    update={
        "cell": "far.a-b.peak.r1",
        "attempt": 1,
        "metrics_url": None,
        "phase": None,
        "end_s": None,
        "windows": {},
        "tenants": (TenantProgress(name="a", percentile=95.0, sla_ms=50.0),),
    }
)


@contextmanager
def exporter(logs: Path, *cells: Progress) -> Iterator[str]:
    """Run an exporter while these cells are measured; yield its address."""
    with ExitStack() as stack:
        for cell in cells:
            log = logs / cell.study / "measure" / f"{cell.cell}.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(progress_file(log))(cell)
        server = stack.enter_context(Exporter(logs, port=0))
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        stack.callback(thread.join)
        stack.callback(server.shutdown)
        yield server.address
