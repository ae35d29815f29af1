"""Experiment `peak`: search the largest load at which every tenant keeps its SLA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, cast

import numpy as np

from perseus.measurement.cell import CellUnderTest, Findings
from perseus.measurement.client_advice import what_would_help
from perseus.measurement.dedicated_peaks import dedicated_peaks, why_blocked
from perseus.measurement.measured_mixes import measured_mixes
from perseus.measurement.predicted_mix import predicted_peak
from perseus.measurement.progress.words import describe_peak
from perseus.measurement.server_under_test import (
    ServerUnderTest,
    server_under_test,
    without_server,
)
from perseus.measurement.windows import keep
from perseus.peak.certifiable import too_slow
from perseus.peak.durations import expected_s, longest_s
from perseus.peak.frontier import next_weights, weights_along
from perseus.peak.load_line import LoadLine, load_line
from perseus.peak.outcome import Outcome, Peak, no_peak
from perseus.peak.search import find_peak
from perseus.serving.failures import ServerError
from perseus.study.experiments.peak import Run
from perseus.study.tasks.measure import MeasureTask

SLOW_RPS = 50
"""Too slow to end any window early, and fast enough that none is longer than usual."""


def measure(cell: CellUnderTest) -> Findings:
    """Search the peak; scales are points of the load line."""
    task, names, first_window = cell.task, cell.task.tenant_names, cell.raw.requests.windows
    dedicated_rps = dedicated_peaks(cell.inputs.dedicated_records)
    run = with_weights(cell)
    idle = {name for name, weight in zip(names, run.weights, strict=False) if weight == 0}
    needed_rps = {name: rps for name, rps in dedicated_rps.items() if name not in idle}
    if foretold := predicted_peak(cell, run):
        line, _ = load_line(run, names, dedicated_rps, {})
        cell.say(describe_peak(foretold, line, names))
        return Findings(without_server(cell) | of_limit(run, names, foretold, line, dedicated_rps))
    with server_under_test(cell) as server:
        line, start = load_line(run, names, dedicated_rps, server.unloaded_p50_ms)
        if reason := why_blocked(cell.inputs.dedicated_records, needed_rps):
            peak = no_peak(Outcome.BLOCKED, reason)
        elif reason := infeasible(task, server.unloaded_p50_ms):
            peak = no_peak(Outcome.INFEASIBLE, reason)
        else:
            peak = _search(cell, server, line, start)
        if peak.outcome is Outcome.CLIENT_LIMITED:
            advice = what_would_help(task.client, task.server, len(cell.client_cores))
            peak = replace(peak, reason=f"{peak.reason}; {advice}")
        cell.say(describe_peak(peak, line, names))
    # The windows of an attempt before this one have numbers, too.
    certified = -1 if peak.certified_window < 0 else first_window + peak.certified_window
    peak = replace(peak, certified_window=certified)
    return Findings({**server.record, **of_limit(run, names, peak, line, dedicated_rps)}, certified)


def nothing(cell: CellUnderTest) -> dict[str, Any]:
    """No peak on its load line."""
    names, dedicated_rps = cell.task.tenant_names, dedicated_peaks(cell.inputs.dedicated_records)
    run = with_weights(cell)
    line, _ = load_line(run, names, dedicated_rps, dict.fromkeys(names, np.nan))
    return of_limit(run, names, no_peak(Outcome.FAILED, ""), line, dedicated_rps)


def of_limit(
    run: Run,
    names: Sequence[str],
    peak: Peak,
    line: LoadLine,
    dedicated_rps: Mapping[str, float],
) -> dict[str, Any]:
    """What record.json says of the limit of a load line with these tenants."""
    return {
        "outcome": peak.outcome,
        "reason": peak.reason,
        "line": asdict(line),
        "weights": run.weights,
        "dedicated_rps": dedicated_rps,
        "estimate_scale": peak.estimate,
        "certified_scale": peak.certified,
        "certified_window": peak.certified_window,
        "first_failing_scale": peak.first_failing,
        "cliff": peak.cliff,
        "speeds_rps": dict(zip(names, peak.speeds_rps, strict=False)),
        "work_ms": {
            name: np.round(1000 * work_s, 4).tolist()
            for name, work_s in zip(names, peak.work_s, strict=False)
        },
        "posterior_scales": [round(scale, 6) for scale in peak.posterior.tolist()],
    }


def with_weights(cell: CellUnderTest) -> Run:
    """What the cell does; the mix of a frontier is chosen by those that were measured before, that
    of a demand follows from the dedicated peaks."""
    run, names = cast(Run, cell.task.run), cell.task.tenant_names
    if run.rate_shares:
        dedicated_rps = dedicated_peaks(cell.inputs.dedicated_records)
        weights = weights_along(run.rate_shares, [dedicated_rps[name] for name in names])
    elif run.point:
        weights = next_weights(len(names), measured_mixes(cell.inputs.earlier_records))
    else:
        return run
    pairs = zip(names, weights, strict=False)  # none where a peak is not known
    cell.say("mix: " + ", ".join(f"{name} {weight}" for name, weight in pairs))
    return run.model_copy(update={"weights": weights})


def load_s(task: MeasureTask) -> tuple[float, float]:
    """Of slow models: a window of a fast one has enough requests sooner."""
    slow_rps = [SLOW_RPS] * len(task.tenants)
    sizes = task.search, task.slas, slow_rps
    return expected_s(*sizes), longest_s(*sizes)


def _search(cell: CellUnderTest, server: ServerUnderTest, line: LoadLine, start: float) -> Peak:
    task = cell.task
    about_s = expected_s(task.search, task.slas, line.rates_rps(start))
    most_s = longest_s(task.search, task.slas, line.rates_rps(start))
    cell.say(f"about {about_s / 60:.1f} min of load, at most {most_s / 60:.0f} min")
    if warning := too_slow(task.preset, task.slas, line.rates_rps(start), task.tenant_names):
        cell.say(f"may end uncertified ({warning})")
    try:
        with server.under_load() as system:
            peak = find_peak(
                system,
                line,
                task.slas,
                task.search,
                start=start,
                unloaded_ms=[server.unloaded_ms[name] for name in task.tenant_names],
                names=task.tenant_names,
                rng=cell.stream(len(task.tenants)),
                on_window=partial(keep, cell, system),
            )
    except ServerError as error:
        return no_peak(Outcome.FAILED, str(error))
    return with_preset_that_can(task, line, peak)


def with_preset_that_can(task: MeasureTask, line: LoadLine, peak: Peak) -> Peak:
    """The peak; where the preset was what left it uncertified, its reason says which would not."""
    if peak.outcome is not Outcome.UNCERTIFIED:
        return peak
    limits_rps = line.rates_rps(peak.estimate)
    advice = too_slow(task.preset, task.slas, limits_rps, task.tenant_names)
    return replace(peak, reason=f"{peak.reason}; {advice}") if advice else peak


def infeasible(task: MeasureTask, unloaded_p50_ms: Mapping[str, float]) -> str:
    """Why no load at all can keep the SLAs, if so."""
    for tenant in task.tenants:
        # The median: few requests say nothing of a high percentile, and one may hiccup.
        alone_ms = unloaded_p50_ms[tenant.name]
        if alone_ms > tenant.sla.latency_ms:
            return (
                f"{tenant.name} takes {alone_ms:.1f} ms (median) without any load, its SLA is"
                f" {tenant.sla.latency_ms:g} ms"
            )
    return ""
