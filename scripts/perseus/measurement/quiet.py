"""Waiting until other processes leave the cores and GPUs of a server."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from perseus.host.gpu import ForeignWork
from perseus.host.procfs import foreign_share, most_at_work, read_cpu
from perseus.peak.durations import PATIENCE_S
from perseus.peak.verdict import said_of_others

LOOK_S = 5.0
"""What is quiet for so long may last for a window."""


class HostPatience:
    """What is left of the time to wait until a host is quiet; `say` hears for whom it waits.

    `root` is the process of which all that is ours descends; `on_gpus` tells what others do on its
    GPUs, if it has some.
    """

    def __init__(
        self,
        cores: Sequence[int],
        root: int | None,
        say: Callable[[str], None],
        on_gpus: ForeignWork | None = None,
    ) -> None:
        self._cores, self._root, self._say, self._on_gpus = cores, root, say, on_gpus
        self._left_s = PATIENCE_S

    def until_quiet(self, foreign: float) -> bool:
        """Wait until others use at most that share of the cores, and of the GPU's time; False where
        they still do when there is no patience left."""
        said = False
        while self._left_s > 0:
            self._left_s -= LOOK_S
            before, start_ns = read_cpu(self._cores, self._root), time.monotonic_ns()
            time.sleep(LOOK_S)
            after = read_cpu(self._cores, self._root)
            on_gpu = 0.0 if self._on_gpus is None else self._on_gpus.share(start_ns) or 0.0
            who = most_at_work(before, after, self._cores)
            share, used = said_of_others(foreign_share(before, after), on_gpu, who)
            if share <= foreign:
                return True
            if not said:
                self._say(f"{used}: waiting until they leave, at most {self._left_s:.0f} s")
                said = True
        return False
