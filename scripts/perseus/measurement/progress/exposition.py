"""Convert the progress of cells into Prometheus metrics and scrape targets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from perseus.measurement.progress.state import Progress
from perseus.peak.verdict import Verdict

CELL = ("study", "cell")
TENANT = (*CELL, "tenant")
SLA = (*TENANT, "percentile")


def metrics(cells: Sequence[Progress]) -> Iterator[Metric]:
    """Yield metrics of the running cells. The function omits values that are not known yet."""
    yield GaugeMetricFamily("perseus_cells", "Number of running cells", len(cells))
    yield from _of_cells(cells)
    yield from _of_tenants(cells)


def targets(cells: Sequence[Progress]) -> list[dict[str, Any]]:
    """Return the addresses at which Prometheus can read the metrics of the cells' servers, in the
    format of Prometheus's HTTP service discovery."""
    return [
        {
            "targets": [parts.netloc],
            "labels": {
                "__scheme__": parts.scheme,
                "__metrics_path__": parts.path or "/metrics",
                **_parameters(parts.query),
                "study": cell.study,
                "cell": cell.cell,
                "server": cell.server,
            },
        }
        for cell in cells
        if cell.metrics_url is not None
        for parts in (urlsplit(cell.metrics_url),)
    ]


def _parameters(query: str) -> dict[str, str]:
    """Return the parameters of a URL as labels of Prometheus.

    If a parameter has several values, the function uses the first value. The function omits a
    parameter whose name is not a valid label, because Prometheus rejects all targets if one label
    is invalid.
    """
    return {
        f"__param_{name}": values[0]
        for name, values in parse_qs(query).items()
        if re.fullmatch(r"\w+", name, re.ASCII)
    }


def _of_cells(cells: Sequence[Progress]) -> Iterator[Metric]:
    info = GaugeMetricFamily(
        "perseus_cell_info",
        "Always 1. The labels name the study, the running cell, the server and the experiment",
        labels=(*CELL, "server", "experiment"),
    )
    attempt = GaugeMetricFamily(
        "perseus_cell_attempt",
        "Number of the present attempt to measure the cell, counted from 1",
        labels=CELL,
    )
    phase = GaugeMetricFamily(
        "perseus_cell_phase",
        "Always 1. The label phase states the phase of the last ended window",
        labels=(*CELL, "phase"),
    )
    told = GaugeMetricFamily(
        "perseus_cell_told_timestamp_seconds",
        "Time at which the cell last reported its progress",
        labels=CELL,
    )
    end = GaugeMetricFamily(
        "perseus_cell_end_timestamp_seconds", "Estimated time at which the cell ends", labels=CELL
    )
    windows = CounterMetricFamily(
        "perseus_cell_windows",
        "Number of ended windows in the present attempt to measure the cell, by verdict",
        labels=(*CELL, "verdict"),
    )
    for cell in cells:
        place = (cell.study, cell.cell)
        info.add_metric((*place, cell.server, cell.kind), 1)
        attempt.add_metric(place, cell.attempt)
        if cell.phase is not None:
            phase.add_metric((*place, cell.phase), 1)
        told.add_metric(place, cell.told_s)
        if cell.end_s is not None:
            end.add_metric(place, cell.end_s)
        for verdict in Verdict:
            windows.add_metric((*place, verdict), cell.windows.get(verdict, 0))
    yield from (info, attempt, phase, told, end, windows)


def _of_tenants(cells: Sequence[Progress]) -> Iterator[Metric]:
    offered = GaugeMetricFamily(
        "perseus_tenant_offered_requests_per_second",
        "Offered rate in the last window",
        labels=TENANT,
    )
    answered = GaugeMetricFamily(
        "perseus_tenant_answered_requests_per_second",
        "Rate of answered requests in the last window",
        labels=TENANT,
    )
    lag = GaugeMetricFamily(
        "perseus_tenant_send_lag_seconds",
        "99th percentile of the send lag (actual minus intended send time) in the last window",
        labels=TENANT,
    )
    lag_limit = GaugeMetricFamily(
        "perseus_tenant_send_lag_limit_seconds",
        "Largest allowed 99th percentile of the send lag in the last window",
        labels=TENANT,
    )
    latency = GaugeMetricFamily(
        "perseus_tenant_latency_seconds",
        "Measured latency at the percentile of the SLA, in the last window",
        labels=SLA,
    )
    sla = GaugeMetricFamily(
        "perseus_tenant_sla_seconds",
        "Latency limit of the SLA",
        labels=SLA,
    )
    for cell in cells:
        for tenant in cell.tenants:
            place = (cell.study, cell.cell, tenant.name)
            of_sla = (*place, f"{tenant.percentile:g}")
            sla.add_metric(of_sla, tenant.sla_ms / 1000)
            if tenant.offered_rps is not None:
                offered.add_metric(place, tenant.offered_rps)
            if tenant.answered_rps is not None:
                answered.add_metric(place, tenant.answered_rps)
            if tenant.send_lag_ms is not None:
                lag.add_metric(place, tenant.send_lag_ms / 1000)
            if tenant.send_lag_limit_ms is not None:
                lag_limit.add_metric(place, tenant.send_lag_limit_ms / 1000)
            if tenant.latency_ms is not None:
                latency.add_metric(of_sla, tenant.latency_ms / 1000)
    yield from (offered, answered, lag, lag_limit, latency, sla)
