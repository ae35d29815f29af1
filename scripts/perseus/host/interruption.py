"""Hide the error messages that Snakemake prints after the user has pressed Ctrl-C.

After Ctrl-C, Snakemake ends all running jobs, and reports them as failed jobs. After SIGTERM,
Snakemake lets running jobs finish, so the module does not hide the errors of these jobs.
"""

from __future__ import annotations

import logging
from typing import Final

ENDS_JOBS: Final = "Terminating processes on user request"
AWAITS_JOBS: Final = "Will exit after finishing currently running jobs"
"""Beginnings of Snakemake's messages after Ctrl-C (ENDS_JOBS) and after SIGTERM (AWAITS_JOBS)."""

INCOMPLETE: Final = "At least one job did not complete successfully"
"""Last message of Snakemake after Ctrl-C or SIGTERM, even if no job has failed."""


class Interruption(logging.Filter):
    """Filter of Snakemake's logger that drops the error messages after Ctrl-C.

    After SIGTERM, the filter drops only the message INCOMPLETE.
    """

    happened = False
    _jobs_are_ended = False

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        self._jobs_are_ended |= message.startswith(ENDS_JOBS)
        self.happened |= message.startswith((ENDS_JOBS, AWAITS_JOBS))
        is_error = record.levelno >= logging.ERROR
        is_final = self._jobs_are_ended or (self.happened and INCOMPLETE in message)
        return not (is_error and is_final)
