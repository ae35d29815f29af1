"""Ctrl-C on Snakemake: one line, and not one more for each job that ends as it was asked to."""

from __future__ import annotations

import logging
from typing import Final

SAID: Final = "Terminating processes on user request"
"""The begin of what Snakemake says itself."""


class Interruption(logging.Filter):
    """Of Snakemake's logger; no error is one after the user has ended the run."""

    happened = False

    def filter(self, record: logging.LogRecord) -> bool:
        self.happened |= record.getMessage().startswith(SAID)
        return not (self.happened and record.levelno >= logging.ERROR)
