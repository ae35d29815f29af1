"""Extract the data of one window from which Perseus estimates the limit of one tenant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perseus.peak.stats import Exceedances, Floats, late_and_recovered
from perseus.peak.verdict import counted
from perseus.peak.window import Phase, Window
from perseus.study.sla import Sla
from perseus.traffic.requests import Status


@dataclass(frozen=True)
class Evidence:
    """The data of one window from which Perseus estimates the limit of one tenant.

    `arrivals_s` contains the intended send times of all requests, in one array per tenant of the
    window. All other arrays describe only the tenant whose limit Perseus estimates. `done_s`
    contains the times of the responses, NaN for a request without a response. All times are in
    seconds since the start of the window. The requests with the indices `first` to `last` - 1 count
    for the verdict. For each counted request, `late` says whether its latency exceeded the latency
    limit, and `recovered` says whether its latency was low (`stats.late_and_recovered`).
    `certifies` says whether the window is a certification window. The rate of such a window is
    below the limit on purpose.
    """

    scale: float
    certifies: bool
    arrivals_s: tuple[Floats, ...]
    done_s: Floats
    first: int
    last: int
    late: NDArray[np.bool_]
    recovered: NDArray[np.bool_]
    exceedances: Exceedances

    @classmethod
    def of(cls, window: Window, tenant: int, sla: Sla, grace_s: float) -> Evidence:
        seen = window.seen
        mine = seen.requests[tenant]
        part = counted(seen, tenant, window.settle_s, grace_s)
        first = int(np.searchsorted(mine.intended_ns, part.intended_ns[:1]).sum())
        late, recovered = late_and_recovered(part.latency_ms(seen.now_ns), sla.latency_ms)
        late &= part.status != Status.UNSENT  # unsent requests never reached the server
        return cls(
            scale=window.scale,
            certifies=window.phase is Phase.CERTIFY,
            arrivals_s=tuple((r.intended_ns - seen.start_ns) / 1e9 for r in seen.requests),
            done_s=np.where(mine.answered, (mine.done_ns - seen.start_ns) / 1e9, np.nan),
            first=first,
            last=first + len(part),
            late=late,
            recovered=recovered,
            exceedances=window.tenants[tenant].exceedances,
        )
