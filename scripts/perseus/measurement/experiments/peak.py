"""Experiment `peak`: search the largest load at which every tenant keeps its SLA."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import cast

from perseus.measurement.cell import CellUnderTest, Findings
from perseus.measurement.client_advice import what_would_help
from perseus.measurement.dedicated_peaks import dedicated_peaks
from perseus.measurement.progress import describe_peak
from perseus.measurement.server_under_test import ServerUnderTest, server_under_test
from perseus.measurement.windows import keep
from perseus.peak.durations import expected_s, longest_s
from perseus.peak.load_line import LoadLine, load_line
from perseus.peak.outcome import Outcome, Peak, no_peak
from perseus.peak.search import find_peak
from perseus.serving.failures import ServerError
from perseus.study.experiments.peak import Run
from perseus.study.tasks.measure import MeasureTask

SLOW_RPS = 0.01
"""Too slow to end any window early."""


def measure(cell: CellUnderTest) -> Findings:
    """Search the peak; scales are points of the load line."""
    task = cell.task
    dedicated_rps = dedicated_peaks(cell.inputs.dedicated_records)
    with server_under_test(cell) as server:
        line, start = load_line(
            cast(Run, task.run), task.tenant_names, dedicated_rps, server.unloaded_p50_ms
        )
        if reason := infeasible(task, dedicated_rps, server.unloaded_p50_ms):
            peak = no_peak(Outcome.INFEASIBLE, reason)
        else:
            peak = _search(cell, server, line, start)
        if peak.outcome is Outcome.CLIENT_LIMITED:
            advice = what_would_help(task.client, task.server, len(cell.client_cores))
            peak = replace(peak, reason=f"{peak.reason}; {advice}")
        cell.say(describe_peak(peak, line, task.tenant_names))
    record = {
        **server.record,
        "outcome": peak.outcome,
        "reason": peak.reason,
        "line": asdict(line),
        "dedicated_rps": dedicated_rps,
        "estimate_scale": peak.estimate,
        "certified_scale": peak.certified,
        "certified_window": peak.certified_window,
        "first_failing_scale": peak.first_failing,
        "cliff": peak.cliff,
        "posterior_scales": [round(scale, 6) for scale in peak.posterior.tolist()],
    }
    return Findings(record, watched_window=peak.certified_window)


def load_s(task: MeasureTask) -> tuple[float, float]:
    """Of slow models: a window of a fast one has enough requests sooner."""
    slow_rps = [SLOW_RPS] * len(task.tenants)
    return expected_s(task.search, task.slas, slow_rps), longest_s(task.search, task.slas)


def _search(cell: CellUnderTest, server: ServerUnderTest, line: LoadLine, start: float) -> Peak:
    task = cell.task
    about_s = expected_s(task.search, task.slas, line.rates_rps(start))
    most_s = longest_s(task.search, task.slas)
    cell.say(f"about {about_s / 60:.1f} min of load, at most {most_s / 60:.0f} min")
    try:
        with server.under_load() as system:
            return find_peak(
                system,
                line,
                task.slas,
                task.search,
                start=start,
                unloaded_ms=[server.unloaded_ms[name] for name in task.tenant_names],
                names=task.tenant_names,
                rng=cell.stream(len(task.tenants)),
                batching=any(tenant.dynamic_batching for tenant in task.tenants),
                on_window=partial(keep, cell, system),
            )
    except ServerError as error:
        return no_peak(Outcome.FAILED, str(error))


def infeasible(
    task: MeasureTask, dedicated_rps: Mapping[str, float], unloaded_p50_ms: Mapping[str, float]
) -> str:
    """Why no load at all can keep the SLAs, if so."""
    for name, peak_rps in dedicated_rps.items():
        if not peak_rps > 0:
            return f"{name} has no dedicated peak, so a share of it means nothing"
    for tenant in task.tenants:
        # The median: few requests say nothing of a high percentile, and one may hiccup.
        alone_ms = unloaded_p50_ms[tenant.name]
        if alone_ms > tenant.sla.latency_ms:
            return (
                f"{tenant.name} takes {alone_ms:.1f} ms (median) without any load, its SLA is"
                f" {tenant.sla.latency_ms:g} ms"
            )
    return ""
