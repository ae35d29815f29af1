"""Suppress the errors of jobs that Ctrl-C on Snakemake has ended.

SIGTERM lets running jobs finish, so their errors are kept.
"""

from __future__ import annotations

import logging
from typing import Final

ENDS_JOBS: Final = "Terminating processes on user request"
AWAITS_JOBS: Final = "Will exit after finishing currently running jobs"
"""How Snakemake's own messages about Ctrl-C and SIGTERM begin."""

INCOMPLETE: Final = "At least one job did not complete successfully"
"""Snakemake's last message, even if no job has failed."""


class Interruption(logging.Filter):
    """Filter of Snakemake's logger: drops errors after the user has ended the run."""

    happened = False
    _jobs_are_ended = False

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        self._jobs_are_ended |= message.startswith(ENDS_JOBS)
        self.happened |= message.startswith((ENDS_JOBS, AWAITS_JOBS))
        is_error = record.levelno >= logging.ERROR
        is_final = self._jobs_are_ended or (self.happened and INCOMPLETE in message)
        return not (is_error and is_final)
