"""Stand-ins for a server, with which tests measure cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from perseus.measurement import measure, server_under_test
from perseus.serving.running_server import RunningServer


def launched_by(
    launch: Callable[..., AbstractContextManager[RunningServer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replace the launch of servers by `launch`. The process is not pinned to cores."""

    @contextmanager
    def cores_of(*arguments: object) -> Iterator[tuple[list[int], list[int]]]:
        yield [0], [0]

    monkeypatch.setattr(server_under_test, "launch", launch)
    monkeypatch.setattr(measure, "cores_of", cores_of)
    monkeypatch.setattr(measure.os, "sched_setaffinity", lambda *arguments: None)
