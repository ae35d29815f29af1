"""Collect the properties of a tenant from measurements on a dedicated server. The prediction models
(`ladder`) predict from these properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from perseus.peak.stats import Floats
from perseus.study.sla import Sla
from perseus.study.tasks.measure import MeasureTask

MIN_UTILISATION = 0.25


class FoundAlone(Protocol):
    """The record of a cell (one measurement) that found the dedicated peak of a tenant."""

    @property
    def task(self) -> MeasureTask: ...
    @property
    def estimate_scale(self) -> float | None: ...
    @property
    def unloaded_p50_ms(self) -> Mapping[str, float | None]: ...
    @property
    def speeds_rps(self) -> Mapping[str, Sequence[float | None]]: ...
    @property
    def work_ms(self) -> Mapping[str, Sequence[float]]: ...


@dataclass(frozen=True)
class Solo:
    """A tenant on a dedicated server: its dedicated peak and its service times.

    `busy_rps` is the saturation throughput in requests/s, NaN if unknown. `work_s`, shape (n,),
    contains service times: the times between the responses of the busy server. `work_s` is empty if
    the service times are unknown. `away_s` is the time that a request spends outside the server:
    its latency minus its waiting time and its service time. `memory_bytes` is the amount of memory
    that one inference accesses, NaN if unknown.
    """

    model: str
    sla: Sla
    peak_rps: float
    busy_rps: float
    work_s: Floats
    away_s: float
    memory_bytes: float

    @classmethod
    def of(cls, repeats: Sequence[FoundAlone], memory_bytes: float) -> Self:
        """Compute the properties of a tenant from the records of all repeats that measured its
        dedicated peak. `memory_bytes` is the memory that one inference of its model accesses."""
        (tenant,) = repeats[0].task.tenants
        work_s = [np.array(each.work_ms.get(tenant.name, ())) / 1000 for each in repeats]
        unloaded_s = [_known(each.unloaded_p50_ms[tenant.name]) / 1000 for each in repeats]
        away_s = [
            max(unloaded - float(np.median(work)), 0.0)
            for unloaded, work in zip(unloaded_s, work_s, strict=True)
            if len(work)
        ]
        return cls(
            model=tenant.model,
            sla=tenant.sla,
            peak_rps=float(np.mean([_known(each.estimate_scale) for each in repeats])),
            busy_rps=usual_speed_rps(repeats, tenant.name),
            work_s=np.concatenate(work_s),
            away_s=float(np.mean(away_s)) if away_s else np.nan,
            memory_bytes=memory_bytes,
        )

    @property
    def utilisation(self) -> float:
        """Return the dedicated peak divided by the saturation throughput."""
        return self.peak_rps / self.busy_rps


class SawSpeeds(Protocol):
    """A record that contains saturation probes."""

    @property
    def speeds_rps(self) -> Mapping[str, Sequence[float | None]]: ...


def usual_speed_rps(records: Sequence[SawSpeeds], tenant: str) -> float:
    """Return the median throughput of a tenant in requests/s over all saturation probes of this
    tenant alone; NaN if the records contain no such probe."""
    seen = np.array([_known(s) for record in records for s in record.speeds_rps.get(tenant, ())])
    known = seen[np.isfinite(seen)]
    return float(np.median(known)) if len(known) else np.nan


def speed_change(now_rps: float, alone_rps: float) -> float:
    """Return the factor by which the host was faster in one cell than during the measurement of the
    dedicated peak; 1 if a throughput is unknown.

    `now_rps` is the saturation throughput of a tenant in the cell. `alone_rps` is its saturation
    throughput in the cells that measured its dedicated peak.
    """
    change = now_rps / alone_rps
    return change if np.isfinite(change) else 1.0


def limit_change(speed_change: float, utilisation: float) -> float:
    """Return the factor by which a limit changes if the speed of the server changes by the factor
    `speed_change`.

    The result is speed_change ^ (1 / utilisation), where `utilisation` is the limit divided by the
    saturation throughput. The reason for this power law is a property of queues: while the SLA
    stays the same, the saturation throughput minus the limit hardly depends on the speed. In an
    M/M/1 queue with an SLA on the p95, this difference is ln 20 / (latency limit of the SLA). For
    small changes of the speed, a constant difference leads to the power law. For large changes, the
    power law also keeps the limit positive.

    There are two exceptions. If the utilisation is unknown or at least 1, as on servers that form
    batches, the function assumes that the limit is proportional to the speed. If the utilisation is
    below MIN_UTILISATION, the function uses MIN_UTILISATION in its place. At such a low
    utilisation, the latency limit is only about two service times, and the limit follows no power
    law. A larger exponent would also amplify errors of the measured speed.
    """
    if not utilisation < 1:
        return speed_change
    return float(speed_change ** (1 / max(utilisation, MIN_UTILISATION)))


def _known(value: float | None) -> float:
    return np.nan if value is None else value
