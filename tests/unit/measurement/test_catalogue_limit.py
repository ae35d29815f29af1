"""A catalogue states no limit for a model that misses the SLA without any queue."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from perseus.measurement.experiments.catalogue import within
from perseus.study.sla import Sla
from perseus.traffic.arrivals import Arrivals

SLA = Sla(percentile=95, latency_ms=200)
SYSTEM = SimpleNamespace(arrivals=Arrivals())


@pytest.mark.parametrize(
    ("late", "reason"),
    [
        (10, "10% of the requests take longer than 200 ms, more late requests than the SLA allows"),
        (4, "has too few requests to certify the SLA"),
    ],
)
def test_a_limit_needs_service_times_that_keep_the_sla(late, reason):
    times_s = np.repeat([0.195, 0.21], [100 - late, late])
    limit = within(None, SYSTEM, "latency", SLA, 195.0, times_s, (5.1, 5.0, 5.2))
    assert limit.reason.endswith(reason)
    assert np.isfinite(limit.limit_rps) == (late <= 5)
