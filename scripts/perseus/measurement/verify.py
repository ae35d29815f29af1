"""Check that a server answers as torch did when the model was exported."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import NDArray

from perseus.measurement.tenant_under_test import ANSWER_S, TenantUnderTest
from perseus.models.answers import TOLERANCES, relative_error, signal
from perseus.traffic.route import RouteError
from perseus.traffic.transport import RequestFailedError


class VerificationError(RuntimeError):
    """A server answers otherwise than torch."""


def verify(tenants: Sequence[TenantUnderTest]) -> dict[str, float]:
    """The relative error of each tenant's answers, over the very path that will be measured.

    The requests are one image alone, all as one batch, and those that the load will consist of.
    Raises VerificationError when an error is above the tolerance, or when a model does not answer.
    """
    return {tenant.name: _verified(tenant) for tenant in tenants}


def _verified(tenant: TenantUnderTest) -> float:
    expected = tenant.answers
    whole = list(range(min(len(expected), tenant.settings.max_batch_size)))
    parts = [[0], whole, *tenant.load_images]
    error = max(
        relative_error(answer, expected[part], signal(expected))
        for answer, part in zip(_answers(tenant, parts), parts, strict=True)
    )
    limit = TOLERANCES[tenant.settings.precision]
    if not error <= limit:
        raise VerificationError(
            f"the server's answers of {tenant.name} differ from the original network's by a relative error of"
            f" {error:.2g} (allowed: {limit:g}); nothing was measured. See server.log"
        )
    return error


def _answers(tenant: TenantUnderTest, parts: Sequence[Sequence[int]]) -> list[NDArray]:
    try:
        with tenant.transport(parts) as transport:
            return [transport.infer(i, ANSWER_S) for i in range(len(parts))]
    except (RequestFailedError, RouteError) as error:
        raise VerificationError(f"{tenant.name} does not answer: {error}") from error
