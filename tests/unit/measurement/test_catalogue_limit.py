"""A catalogue states no limit for a model that misses the SLA without any queue."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from perseus.measurement.experiments.catalogue import within
from perseus.study.sla import Sla
from perseus.traffic.arrivals import Arrivals

SYSTEM = SimpleNamespace(arrivals=Arrivals())


@pytest.mark.parametrize(
    ("percentile", "late", "reason"),
    [
        (95, 100, "10% of the requests take longer than 200 ms"),
        (99.9, 4, "0.4% of the requests take longer than 200 ms"),
        (95, 40, "has too few requests to certify the SLA"),
    ],
)
def test_a_limit_needs_service_times_that_keep_the_sla(percentile, late, reason):
    """Of 1000 requests, `late` take longer than the latency limit even without queueing."""
    sla = Sla(percentile=percentile, latency_ms=200)
    times_s = np.repeat([0.195, 0.21], [1000 - late, late])
    limit = within(None, SYSTEM, "latency", sla, 195.0, times_s, (5.1, 5.0, 5.2))
    assert reason in limit.reason
    assert np.isfinite(limit.limit_rps) == (late == 40)
