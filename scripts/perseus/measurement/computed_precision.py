"""Find the numeric precision in which a runtime computes a model.

A runtime may compute in a precision that differs from the configured precision. If the CPU has
instructions for bf16, OpenVINO by default computes an fp32 model in bf16. If the CPU has no
instructions for bf16, OpenVINO computes a bf16 model in fp32. Perseus's backend for OpenVINO reads
the precision from the compiled model; NVIDIA's backend for OpenVINO reports no precision. ONNX
Runtime and PyTorch compute in the types of the model file.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

from perseus.measurement.tenant_under_test import TenantUnderTest
from perseus.measurement.triton_metrics import Scraper, told_precisions
from perseus.serving.running_server import RunningServer
from perseus.study.tasks.measure import MeasuredTenant

WEIGHTS = ("int8",)
"""Precisions that the weights in the model file determine. If one of these precisions is
configured, Perseus ignores the precision that the runtime reports."""

CHOOSING = ("openvino",)
"""Runtimes that may compute in a precision that differs from the configured precision."""

RETRY_S = 1.0  # time for further readings after a failed reading


def computed_precisions(
    server: RunningServer, runtime: str, tenants: Sequence[TenantUnderTest]
) -> dict[str, str | None]:
    """Return, by tenant, the precision in which the runtime computes the model; None if unknown.

    If the configured precision is in WEIGHTS, the result is the configured precision. Otherwise the
    result is the precision that the backend reports. If the backend reports no precision, the
    result is None for a runtime in CHOOSING, and the configured precision for any other runtime.
    `runtime` is the configured runtime of the server.
    """
    end_s = time.monotonic() + (RETRY_S if runtime in CHOOSING else 0.0)
    with closing(Scraper(server.metrics_url, server.access)) as scraper:
        while (told := scraper.read(told_precisions)) is None and time.monotonic() < end_s:
            time.sleep(0.1)
    return {
        tenant.name: _of(tenant.settings, tenant.model, runtime, told or {}) for tenant in tenants
    }


def _of(tenant: MeasuredTenant, model: str, runtime: str, told: Mapping[str, str]) -> str | None:
    if tenant.precision in WEIGHTS:
        return tenant.precision
    network = tenant.steps[-1] if tenant.steps else model
    return told.get(network, None if runtime in CHOOSING else tenant.precision)


def warnings(
    tenants: Sequence[MeasuredTenant], computed: Mapping[str, str | None]
) -> Iterator[str]:
    """Yield one warning for each tenant whose computed precision differs from the configured
    precision."""
    for tenant in tenants:
        found = computed.get(tenant.name)
        if found is not None and tenant.precision not in (None, found):
            yield (
                f"{tenant.name} is configured for {tenant.precision}, but the runtime computes in"
                f" {found}, probably because this CPU has no instructions for {tenant.precision}:"
                f" the results of this tenant are valid only for {found}"
            )
