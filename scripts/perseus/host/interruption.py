"""Ctrl-C on Snakemake: one line, and not one more for each job that ends as it was asked to.

SIGTERM lets the running jobs finish: those that fail still say why.
"""

from __future__ import annotations

import logging
from typing import Final

ENDS_JOBS: Final = "Terminating processes on user request"
AWAITS_JOBS: Final = "Will exit after finishing currently running jobs"
"""What Snakemake says itself of an interruption, and of SIGTERM, begins so."""

INCOMPLETE: Final = "At least one job did not complete successfully"
"""And what it says in the end, also where no job has failed."""


class Interruption(logging.Filter):
    """Of Snakemake's logger; no error is one after the user has ended the run."""

    happened = False
    _jobs_are_ended = False

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        self._jobs_are_ended |= said.startswith(ENDS_JOBS)
        self.happened |= said.startswith((ENDS_JOBS, AWAITS_JOBS))
        is_error = record.levelno >= logging.ERROR
        of_the_end = self._jobs_are_ended or (self.happened and INCOMPLETE in said)
        return not (is_error and of_the_end)
