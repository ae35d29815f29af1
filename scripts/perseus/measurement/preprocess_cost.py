"""Measure how much CPU time the client needs to preprocess the images of a request.

See docs/explanation/preprocessing.md.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import numpy as np

from perseus.measurement.tenant_under_test import TenantUnderTest
from perseus.models.pictures import Pictures

REQUESTS = 40


def client_preprocess_ms(tenants: Sequence[TenantUnderTest]) -> dict[str, float]:
    """Return, by tenant, the median CPU time in ms to convert the images of a request into tensors.

    The dictionary contains all tenants with preprocessing, even if the server preprocesses their
    images.
    """
    return {
        tenant.name: _median_ms(tenant, tenant.pictures)
        for tenant in tenants
        if tenant.pictures is not None
    }


def _median_ms(tenant: TenantUnderTest, pictures: Pictures) -> float:
    taken_ns = []
    for images in itertools.islice(itertools.cycle(tenant.load_images), REQUESTS):
        start_ns = time.thread_time_ns()
        for i in images:
            pictures.preprocessing.tensor(pictures.files[i])
        taken_ns.append(time.thread_time_ns() - start_ns)
    return float(np.median(taken_ns)) / 1e6
