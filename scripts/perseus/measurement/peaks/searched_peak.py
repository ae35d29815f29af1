"""Search for the peak of a cell on its server."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from perseus.measurement.cell import BlockedError, CellUnderTest, Findings
from perseus.measurement.peaks.peak_record import peak_record
from perseus.measurement.peaks.preset_advice import with_advice
from perseus.measurement.peaks.wanted_peak import WantedPeak
from perseus.measurement.progress.messages import describe_peak, describe_search
from perseus.measurement.server_under_test import server_under_test
from perseus.measurement.windows import keep
from perseus.peak.certifiable import begins_too_slow, infeasible
from perseus.peak.load_line import load_line
from perseus.peak.outcome import Outcome, no_peak
from perseus.peak.search import find_peak
from perseus.serving.failures import ServerError


def searched_peak(cell: CellUnderTest, wanted: WantedPeak) -> Findings:
    """Start a server, search for its limit along the load line, and return the findings.

    If a needed dedicated peak is unknown, the function raises BlockedError, and starts no server.
    Raises ServerError if the server does not start, and VerificationError if the server sends wrong
    responses.
    """
    if wanted.blocked:
        raise BlockedError(wanted.blocked)
    task, names, first_window = cell.task, cell.task.tenant_names, cell.raw.requests.windows
    with server_under_test(cell) as server:
        alone_ms = server.unloaded_p50_ms
        line, start = load_line(wanted.run, names, wanted.dedicated_rps, alone_ms)
        start_rps = line.rates_rps(start)
        if reason := infeasible(task.slas, names, start_rps, alone_ms):
            peak = no_peak(Outcome.INFEASIBLE, reason)
        else:
            warning = begins_too_slow(task.preset, task.slas, start_rps, names, alone_ms)
            for sentence in describe_search(task, wanted.run.weights, start_rps, warning):
                cell.say(sentence)
            try:
                with server.under_load() as system:
                    peak = find_peak(
                        system,
                        line,
                        task.slas,
                        task.search,
                        start=start,
                        unloaded_ms=[server.unloaded_ms[name] for name in names],
                        names=names,
                        rng=cell.own_stream,
                        on_window=partial(keep, cell, system),
                    )
            except ServerError as error:
                peak = no_peak(Outcome.FAILED, str(error))
        peak = with_advice(peak, cell, line)
        cell.say(describe_peak(peak, line, names))
    # The numbers of windows count over all attempts, and an earlier attempt may have had windows.
    certified = -1 if peak.certified_window < 0 else first_window + peak.certified_window
    found = peak_record(wanted, names, replace(peak, certified_window=certified), line)
    return Findings({**server.record, **found}, certified)
