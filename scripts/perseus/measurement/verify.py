"""Check that a server answers as the network did when it was exported."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import NDArray

from perseus.measurement.tenant_under_test import ANSWER_S, TenantUnderTest
from perseus.models.answers import TOLERANCES, relative_error, signal
from perseus.traffic.route import RouteError
from perseus.traffic.transport import RequestFailedError


class VerificationError(RuntimeError):
    """A server answers otherwise than the network did."""


def verify(tenants: Sequence[TenantUnderTest]) -> dict[str, float]:
    """The relative error of each tenant's answers, over the very path that will be measured.

    The requests are the smallest that are sent, all images as one batch as far as the server takes
    that, and those that the load will consist of.
    Raises VerificationError when an error is above the tolerance, or when a model does not answer.
    """
    return {tenant.name: _verified(tenant) for tenant in tenants}


def _verified(tenant: TenantUnderTest) -> float:
    expected = tenant.answers
    smallest, largest = tenant.settings.request_batch_size, tenant.settings.max_batch_size
    sizes = (smallest, min(max(smallest, len(expected)), largest))
    parts = [[i % len(expected) for i in range(size)] for size in sizes] + tenant.load_images
    error = max(
        relative_error(answer, expected[part], signal(expected))
        for answer, part in zip(_answers(tenant, parts), parts, strict=True)
    )
    limit = TOLERANCES[tenant.settings.precision]
    if not error <= limit:
        raise VerificationError(
            f"the server's answers of {tenant.name} differ from the original network's by a"
            f" relative error of {error:.2g} (allowed: {limit:g}); nothing was measured."
            " See server.log"
        )
    return error


def _answers(tenant: TenantUnderTest, parts: Sequence[Sequence[int]]) -> list[NDArray]:
    try:
        with tenant.transport(parts) as transport:
            return [transport.infer(i, ANSWER_S) for i in range(len(parts))]
    except (RequestFailedError, RouteError) as error:
        raise VerificationError(f"{tenant.name} does not answer: {error}") from error
