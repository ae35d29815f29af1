"""Wait until other processes use only a small share of the cores and GPUs of a server."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from perseus.host.gpu import OtherGpuWork
from perseus.host.procfs import most_at_work, other_cpu_share, read_cpu
from perseus.peak.durations import PATIENCE_S
from perseus.peak.verdict import other_load_text

LOOK_S = 5.0
"""Length of one measurement of the load of other processes, in seconds. A host that is idle for
this time probably stays idle for a window."""


class IdleHostWaiter:
    """Waits until the host is idle, for at most PATIENCE_S seconds in total.

    During a wait, `say` gets a message about the load of other processes. Other processes are all
    processes except the server's process `root` and its descendants. `root` is None if the server
    runs on another host, because the load of another host is unknown. `on_gpus` measures the load
    of other processes on the server's GPUs, and is None without GPUs.
    """

    def __init__(
        self,
        cores: Sequence[int],
        root: int | None,
        say: Callable[[str], None],
        on_gpus: OtherGpuWork | None = None,
    ) -> None:
        self._cores, self._root, self._say, self._on_gpus = cores, root, say, on_gpus
        self._left_s = PATIENCE_S

    def wait_until_idle(self, other_load: float) -> bool:
        """Wait until other processes use at most the share `other_load` (0..1) of the cores and
        GPUs. Return whether their load has fallen to this share.

        All calls of this method together wait for at most PATIENCE_S seconds. When this time is
        used up, each further call returns False at once.
        """
        is_announced = False
        while self._left_s > 0:
            self._left_s -= LOOK_S
            before, start_ns = read_cpu(self._cores, self._root), time.monotonic_ns()
            time.sleep(LOOK_S)
            after = read_cpu(self._cores, self._root)
            on_gpu = 0.0 if self._on_gpus is None else self._on_gpus.share(start_ns) or 0.0
            who = most_at_work(before, after, self._cores)
            share, used = other_load_text(other_cpu_share(before, after), on_gpu, who)
            if share <= other_load:
                return True
            if not is_announced:
                self._say(f"{used}: waiting until this load ends, at most {self._left_s:.0f} s")
                is_announced = True
        return False
