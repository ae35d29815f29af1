"""Detect a run in which Snakemake has nothing to do.

In such a run, Snakemake does not call the hooks of a workflow (`onstart`, `onsuccess`). Perseus
must therefore detect the message that Snakemake prints.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

MESSAGE_START: Final = "Nothing to be done"
"""Beginning of the message that Snakemake prints if it has nothing to do."""


class NothingToDo(logging.Filter):
    """Filter of Snakemake's logger that calls `then` if Snakemake has nothing to do."""

    def __init__(self, then: Callable[[], None]) -> None:
        super().__init__()
        self._then = then

    def filter(self, record: logging.LogRecord) -> bool:
        if record.getMessage().startswith(MESSAGE_START):
            self._then()
        return True
