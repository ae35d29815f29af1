"""Shorten Snakemake's output on the terminal to warnings, errors, and one line for each job.

Snakemake's log file in .snakemake/log keeps all messages.
"""

from __future__ import annotations

import logging
from typing import Final

STREAM_HANDLER: Final = "DefaultStreamHandler"
"""Name of Snakemake's own log handler for the terminal.

If the user chooses a logger plugin, this handler is missing. Then the module changes nothing.
"""

JOB, JOB_COUNTS, JOB_ERROR = "job_info", "run_info", "job_error"
HIDDEN_EVENTS: Final = (
    "workflow_started",
    "resources_info",
    "job_started",
    "job_finished",
    "progress",
    JOB_COUNTS,
)
HIDDEN_TEXTS: Final = (
    "Building DAG of jobs",
    "Using shell: ",
    "Conda environments: ignored",
    "Select jobs to execute",
)


def shorten(logger: logging.Logger) -> None:
    """Hide most messages of Snakemake's logger from the terminal, until the process ends."""
    for handler in logger.handlers:
        if handler.name == STREAM_HANDLER:
            lines = _JobLines(handler.formatter or logging.Formatter())
            # Insert this filter first: it needs the message with the number of jobs, which the
            # filter of `--quiet progress` drops.
            handler.filters.insert(0, lines.is_shown)
            handler.setFormatter(lines)


class _JobLines(logging.Formatter):
    """Formats Snakemake's messages for the terminal.

    For each job, the formatter writes one line. The line of the third started job begins, for
    example, with "[3 of 20]". The formatter removes the date from error messages about jobs.
    """

    def __init__(self, snakemake: logging.Formatter) -> None:
        super().__init__()
        self._snakemake = snakemake
        self._started = self._total = 0

    def is_shown(self, record: logging.LogRecord) -> bool:
        event = getattr(record, "event", None)
        if event == JOB_COUNTS:
            self._total = getattr(record, "stats", {}).get("total", 0)
        return event not in HIDDEN_EVENTS and not record.getMessage().startswith(HIDDEN_TEXTS)

    def format(self, record: logging.LogRecord) -> str:
        event = getattr(record, "event", None)
        text = self._snakemake.format(record)
        if event == JOB:
            self._started += 1
            what = getattr(record, "rule_msg", None) or f"Rule {getattr(record, 'rule_name', '')}"
            return f"[{self._started} of {max(self._total, self._started)}] {what}"
        return text.partition("\n")[2] if event == JOB_ERROR else text
