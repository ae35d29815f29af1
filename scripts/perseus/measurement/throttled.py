"""Detect whether a CPU quota (of a container or a cgroup) stopped the server or the client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from perseus.host.cpu_quota import CpuQuota, Throttling, read_quota
from perseus.measurement.cell import Findings
from perseus.peak.outcome import Outcome
from perseus.study.tasks.measure import MeasureTask

LITTLE: Final = 0.01
"""Perseus reports a quota only if it stopped processes in more than this share (0..1) of the
quota's periods. The kernel grants a quota in slices, so processes sometimes wait even if they use
less than the quota."""

EXPLAINED: Final = (Outcome.UNSTEADY, Outcome.DISTURBED, Outcome.CLIENT_LIMITED)
"""Outcomes that a CPU quota can cause."""


@dataclass(frozen=True)
class QuotaWatch:
    """The CPU quota (None without a quota), and the counters of the quota at the start of the
    measurement."""

    quota: CpuQuota | None
    before: Throttling

    @classmethod
    def begin(cls) -> Self:
        quota = read_quota()
        return cls(quota, quota.throttling() if quota else Throttling(0, 0))

    def named(self, found: Findings, task: MeasureTask) -> Findings:
        """Add the key `throttled` to the findings of a cell, and return the findings.

        The kernel applies a CPU quota in periods of equal length. `throttled` is a text with the
        share of these periods in which the quota stopped processes of the cell. The key is None
        without a quota, or if the share is at most LITTLE. Otherwise an outcome that a quota can
        cause (EXPLAINED) becomes the outcome `throttled`.
        """
        share = self.quota.throttling().share_since(self.before) if self.quota else 0.0
        if self.quota is None or share <= LITTLE:
            return replace(found, record={**found.record, "throttled": None})
        who = "the client" if task.server.remote else "server and client"
        message = (
            f"the CPU quota of {self.quota.cores:g} cores stopped {who} in {share:.0%} of the quota"
            " periods"
        )
        record = {**found.record, "throttled": message}
        if found.outcome in EXPLAINED:
            reason = f"{message} ({found.record['reason']})"
            record |= {"outcome": Outcome.THROTTLED, "reason": reason}
        return replace(found, record=record)


def warnings(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield a warning if a CPU quota stopped the server or the client of a cell.

    `record` contains the keys that the experiment adds to record.json.
    """
    if message := record.get("throttled"):
        yield f"{message}: the measured limits are valid only with this quota"
