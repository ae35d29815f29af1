"""A run of Snakemake that finds nothing to do: it calls no hook of the workflow then."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

SAID: Final = "Nothing to be done"
"""The begin of what Snakemake says itself."""


class NothingToDo(logging.Filter):
    """Of Snakemake's logger; calls `then` where a run ends so."""

    def __init__(self, then: Callable[[], None]) -> None:
        super().__init__()
        self._then = then

    def filter(self, record: logging.LogRecord) -> bool:
        if record.getMessage().startswith(SAID):
            self._then()
        return True
