"""Describe the properties of a tenant that prediction models use, measured on a dedicated
server."""

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
    """The record of a cell (one measurement) that found the limit of a dedicated server."""

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
    contains the service times, measured as the times between responses. If the service times are
    unknown, `work_s` is empty. `away_s` is the network time of a request: latency minus waiting
    time minus service time. `memory_bytes` is the memory that an inference accesses, NaN if
    unknown.
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
        """Compute the properties of a tenant from records that measured its dedicated peak: one
        record for each repeat."""
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
        """Return the utilisation of the server at the dedicated peak."""
        return self.peak_rps / self.busy_rps


class SawSpeeds(Protocol):
    """A record that contains saturation probes."""

    @property
    def speeds_rps(self) -> Mapping[str, Sequence[float | None]]: ...


def usual_speed_rps(records: Sequence[SawSpeeds], tenant: str) -> float:
    """Return the median saturation throughput of a tenant over all saturation probes of this tenant
    alone; NaN if no probe measured this throughput."""
    seen = np.array([_known(s) for record in records for s in record.speeds_rps.get(tenant, ())])
    known = seen[np.isfinite(seen)]
    return float(np.median(known)) if len(known) else np.nan


def speed_change(now_rps: float, alone_rps: float) -> float:
    """Return the host drift: the saturation throughput `now_rps` of a tenant in one cell, divided
    by its saturation throughput `alone_rps` in the cells that measured its dedicated peak. The
    result is 1 if a throughput is unknown."""
    change = now_rps / alone_rps
    return change if np.isfinite(change) else 1.0


def limit_change(speed_change: float, utilisation: float) -> float:
    """Return the factor by which a limit changes if the speed of the server changes by the factor
    `speed_change`.

    `utilisation` is the limit divided by the saturation throughput. If the speed of the server
    changes and the SLA stays the same, the difference between the saturation throughput and the
    limit is nearly constant. In an M/M/1 queue with an SLA on the p95, the difference between the
    saturation throughput and the limit is ln 20 / (latency limit of the SLA). Therefore, if the
    speed changes by a factor f close to 1, the limit changes by the factor f ^ (1 / utilisation).
    The power law f ^ (1 / utilisation) also keeps the limit positive if f is far below 1. If the
    utilisation is unknown or at least 1, the function assumes that the limit is proportional to the
    speed. Utilisations of at least 1 occur on servers that form batches. If the utilisation is
    below MIN_UTILISATION, the function uses MIN_UTILISATION instead. At a utilisation below
    MIN_UTILISATION, the latency limit of the SLA is only about two service times, so the limit
    follows no power law. An exponent above 1 / MIN_UTILISATION would also amplify errors of the
    measured speed.
    """
    if not utilisation < 1:
        return speed_change
    return float(speed_change ** (1 / max(utilisation, MIN_UTILISATION)))


def _known(value: float | None) -> float:
    return np.nan if value is None else value
