"""Measure one cell, the smallest unit of a study, on reserved cores, and write its raw results."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import scipy.stats  # noqa: F401, an import during the first verdict would delay the next window

from perseus.host import gpu, machine
from perseus.host.cores import TooFewCoresError
from perseus.host.exclusive import LockError
from perseus.host.files import write_json
from perseus.host.gpu import GpuError
from perseus.host.signals import terminate_as_exit
from perseus.measurement import computed_precision, throttled
from perseus.measurement.advice import with_advice
from perseus.measurement.cell import (
    BlockedError,
    CellUnderTest,
    Findings,
    Inputs,
    Outputs,
    RawResults,
)
from perseus.measurement.energy import host_watts, window_watts
from perseus.measurement.experiments import Experiment, procedure
from perseus.measurement.monitor import MonitorFile
from perseus.measurement.progress.state import OnProgress, ignored
from perseus.measurement.raw_results import RequestsWriter, write_windows
from perseus.measurement.server_under_test import without_server
from perseus.measurement.throttled import QuotaWatch
from perseus.measurement.unbatched_limit import warnings
from perseus.measurement.verify import VerificationError, unchecked
from perseus.models.export_errors import export_error
from perseus.peak.outcome import Outcome
from perseus.serving.container_engine import PULL_S
from perseus.serving.failures import ServerError, in_a_line
from perseus.serving.launch import cores_of
from perseus.study.recorded import read_trace
from perseus.study.setting import is_variant
from perseus.study.tasks.measure import MeasureTask
from perseus.study.trace_files import TraceError
from perseus.traffic.client import ClientError
from perseus.traffic.route import RouteError

FAILURES: Final = (
    ServerError,
    VerificationError,
    TooFewCoresError,
    LockError,
    GpuError,
    ClientError,
    RouteError,
    TraceError,
)
"""If `measure` has no result to write, it raises one of these exceptions. The message states the
reason."""

ATTEMPTS: Final = 2
"""Perseus measures a cell at most this many times. Each attempt uses a fresh server."""

STARTS_MINUTES: Final = 30
"""Time in minutes that the job of a cell may need to start servers and to check their responses.
The time to offer load and the time to pull an image are not included."""

MIN_MINUTES: Final = 240
"""A job requests at least this time in minutes from a batch scheduler, because the estimated time
may be too short for a search with a slow model."""


def most_minutes(task: MeasureTask) -> int:
    """Return the number of minutes that a batch scheduler must allow for the job of a cell,
    including all attempts."""
    _, most_s = procedure(task.run.kind).load_s(task)
    pull_s = PULL_S if task.server.image else 0.0
    return max(MIN_MINUTES, STARTS_MINUTES + math.ceil((pull_s + ATTEMPTS * most_s) / 60))


def measure(
    task: MeasureTask,
    inputs: Inputs,
    outputs: Outputs,
    say: Callable[[str], None],
    on_progress: OnProgress = ignored,
) -> None:
    """Measure a cell, and write its raw results.

    `say` gets messages about the progress, and `on_progress` gets the progress as numbers. After a
    temporary failure, the function measures the cell once more. The written record may also state a
    failure: for example, that the server misses an SLA at every load, or that the client cannot
    send more load.

    If every attempt ends with an error, `is_finding` decides whether the last error is a result of
    the study, for example too little memory for all models. The function writes such a result into
    the record, and raises any other error (FAILURES).
    """
    of_gpus = gpu.describe(task.server.gpus)
    with ExitStack() as stack:
        stack.enter_context(terminate_as_exit())
        server_cores, client_cores = stack.enter_context(
            cores_of(task.server, f"{task.study}/{task.cell}", say)
        )
        os.sched_setaffinity(0, client_cores)
        started = {"unix_ns": time.time_ns(), "monotonic_ns": time.monotonic_ns()}
        raw = RawResults(
            stack.enter_context(RequestsWriter(outputs.requests)),
            stack.enter_context(MonitorFile(outputs.monitor)),
            errors={name: {} for name in task.tenant_names},
        )
        cell = CellUnderTest(
            task,
            inputs,
            outputs.server_log,
            server_cores,
            client_cores,
            raw,
            say,
            attempt=1,
            on_progress=on_progress,
        )
        tried = measure_with_retries(cell, procedure(task.run.kind))
    write_windows(outputs.windows, raw.windows)
    standing = [row for row in raw.windows if row["attempt"] == tried.attempt]
    found = tried.found.record
    doubts = [
        *computed_precision.warnings(task.tenants, found.get("computed_precisions", {})),
        *warnings(found, standing),
        *throttled.warnings(found),
        *unchecked(found.get("relative_errors", {})),
    ]
    for each in doubts:
        say(f"warning: {each}")
    write_json(
        outputs.record,
        {
            "cell": task.plain(),
            "host": machine.describe(server_cores, client_cores)
            | {"client_realtime": raw.client_realtime, "gpu": of_gpus},
            "started": started,
            "finished_monotonic_ns": time.monotonic_ns(),
            "requests": sum(row["requests"] for row in raw.windows),
            "measured_s": sum(row["elapsed_s"] for row in raw.windows) / len(task.tenants),
            "errors": raw.errors,
            "gpu_watts": window_watts(outputs.monitor, raw.windows, tried.found.watched_window),
            "host_watts": host_watts(outputs.monitor, raw.windows, tried.found.watched_window),
            "attempt": tried.attempt,
            "attempts": tried.endings,
            "traces": traces_read(task, inputs),
            "warnings": doubts,
            "throttled": None,
            **tried.found.record,
        },
    )


def traces_read(task: MeasureTask, inputs: Inputs) -> dict[str, str]:
    """Return a description of each trace that the cell replays.

    The key of a description names the file of the trace and the selected rows.
    """
    files = dict(zip(task.run.files, inputs.files, strict=True))
    named = [(source, files[source.file]) for source in task.run.traces]
    if task.trace and inputs.trace:
        named.append((task.trace, inputs.trace))
    return {str(source): read_trace(file, source).message(str(source)) for source, file in named}


@dataclass(frozen=True)
class Tried:
    """The findings of one attempt to measure a cell, the number of this attempt, and the outcomes
    of all attempts."""

    found: Findings
    attempt: int
    endings: Sequence[Mapping[str, str]]


def measure_with_retries(cell: CellUnderTest, experiment: Experiment) -> Tried:
    """Measure a cell. After a temporary failure, measure the cell again.

    Return the findings of the attempt that counts, usually the last attempt.

    The earlier attempt counts if the last attempt ended with an error. The earlier attempt also
    counts if the last attempt failed temporarily and found no limit of the server, but the earlier
    attempt found the limit.

    If every attempt ended with an error, `is_finding` decides whether the last error is a result of
    the study. If the error is a result, the function returns findings that state the error as the
    reason. Otherwise the function raises the error.
    """
    if reason := repository_export_error(cell.inputs.repository):
        return unserved(cell, experiment, Outcome.INFEASIBLE, [], reason)
    stands: tuple[Findings, int] | None = None
    endings: list[dict[str, str]] = []
    for attempt in range(1, ATTEMPTS + 1):
        cell = replace(cell, attempt=attempt)
        if endings:
            cell.say("{outcome}: {reason}; measuring again on a fresh server".format(**endings[-1]))
        try:
            watch = QuotaWatch.begin()
            later = watch.named(with_advice(experiment.measure(cell), cell), cell.task)
        except BlockedError as error:
            cell.say(f"{Outcome.BLOCKED}: {error}")
            return unserved(cell, experiment, Outcome.BLOCKED, endings, str(error))
        except FAILURES as error:
            failed, reason = Outcome.FAILED, in_a_line(error)
            is_temporary = isinstance(error, (ServerError, ClientError))
            if stands is None and (attempt == ATTEMPTS or not is_temporary):
                if not is_finding(cell, error):
                    raise
                return unserved(cell, experiment, failed, endings, reason)
            endings.append({"outcome": failed, "reason": reason})
            continue
        endings.append({"outcome": later.outcome, "reason": later.record["reason"]})
        if stands is None or later.outcome.is_result or later.has_limit or not stands[0].has_limit:
            stands = later, attempt
        if not later.outcome.is_temporary:
            break
    assert stands is not None  # without any findings, the loop has returned or raised an error
    return Tried(*stands, endings)


def is_finding(cell: CellUnderTest, error: Exception) -> bool:
    """Return whether an error of the server is a result of the study.

    An error of the server is a result if the scenario is one of the settings that a grid compares,
    or if the cell measures a model of a catalogue. For several tenants, the error is also a result
    if Perseus has already measured each tenant alone. For example, the memory may be too small for
    all models together.
    """
    of_server = isinstance(error, (ServerError, VerificationError))
    served_alone = bool(cell.inputs.dedicated_records)
    is_row = is_variant(cell.task.scenario) or cell.task.run.is_survey
    return of_server and (served_alone or is_row)


def repository_export_error(repository: Path | None) -> str:
    """Return the first export error of the models in a repository, or an empty text if all exports
    succeeded."""
    found = sorted(repository.glob("*/1/*")) if repository else []
    files = (path for path in found if path.is_file())  # Python may have added __pycache__
    return next(filter(None, map(export_error, files)), "")


def unserved(
    cell: CellUnderTest,
    experiment: Experiment,
    outcome: Outcome,
    before: Sequence[Mapping[str, str]],
    reason: str,
) -> Tried:
    """Return findings that state why the cell has no measured values.

    `before` contains the outcomes and reasons of earlier attempts to measure the cell.
    """
    ended = {"outcome": outcome, "reason": reason}
    found = Findings({**without_server(cell), **experiment.empty_record(cell), **ended})
    return Tried(found, cell.attempt, [*before, ended])
