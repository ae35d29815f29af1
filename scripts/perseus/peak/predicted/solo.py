"""What a tenant did alone on a server: all that predictions of sharing rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from perseus.peak.stats import Floats
from perseus.study.sla import Sla
from perseus.study.tasks.measure import MeasureTask

LEAST_UTILISATION = 0.25


class FoundAlone(Protocol):
    """The record of a cell that found the limit of one tenant alone, as whoever reads it has it."""

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
    """A tenant alone: its dedicated peak, and the server's work on its requests.

    `busy_rps` is what the busy server answered, and `work_s`, shape (n,), the times between its
    answers: what a request costs it, whatever works on it. NaN and none where that was not seen.
    `away_s` is what a request takes beside waiting and work, `memory_bytes` how much memory an
    inference touches, NaN where the network is not known.
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
        """From the records of the repeats of a dedicated peak, at least one."""
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
        """Of the server, at the dedicated peak."""
        return self.peak_rps / self.busy_rps


class SawSpeeds(Protocol):
    """A record of a cell that looked at how fast its busy server was."""

    @property
    def speeds_rps(self) -> Mapping[str, Sequence[float | None]]: ...


def usual_speed_rps(records: Sequence[SawSpeeds], tenant: str) -> float:
    """What busy servers answered a tenant alone; NaN if that was not seen.

    The median of all looks: one that a burst on the host met does not decide.
    """
    seen = np.array([_known(s) for record in records for s in record.speeds_rps.get(tenant, ())])
    known = seen[np.isfinite(seen)]
    return float(np.median(known)) if len(known) else np.nan


def speed_change(now_rps: float, alone_rps: float) -> float:
    """How many times as fast a server was as when a tenant was measured alone, by what it answered
    the tenant; 1 where that was not seen."""
    change = now_rps / alone_rps
    return change if np.isfinite(change) else 1.0


def limit_change(speed_change: float, utilisation: float) -> float:
    """How many times as high a limit is on a server that is so many times as fast, where work and
    SLA stay; `utilisation` is the limit over what the busy server answered.

    A limit lies a constant below what the busy server answers (M/M/1: by ln 20 / SLA where p95 is
    bound), so that by small changes it changes by the power 1 / utilisation; by large ones such a
    power stays above 0. In proportion where it lies above that, as of batches, or is not known.
    Below LEAST_UTILISATION, with an SLA of hardly two works, limits change by no power, and the
    error of what was seen of the speed would grow with it.
    """
    if not utilisation < 1:
        return speed_change
    return float(speed_change ** (1 / max(utilisation, LEAST_UTILISATION)))


def _known(value: float | None) -> float:
    return np.nan if value is None else value
