"""Check that the responses of a server differ from the reference responses by no more than a
tolerance. Without reference responses, compare two responses to the same request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from perseus.measurement.tenant_under_test import ANSWER_S, TenantUnderTest
from perseus.models.answers import REPEATED, TOLERANCES, repeated_error
from perseus.models.reference import Reference
from perseus.models.tensors import Tensor
from perseus.serving.running_server import RunningServer
from perseus.serving.statistics import tenant_times
from perseus.traffic.route import RouteError
from perseus.traffic.transport import RequestFailedError

Answers = list[dict[str, Tensor]]
"""For each request, the outputs in its response, by name."""


class VerificationError(RuntimeError):
    """The responses of a server are wrong.

    They differ from the reference responses, two responses to the same request differ, or a
    response comes from a cache.
    """


def verify(tenants: Sequence[TenantUnderTest]) -> dict[str, float | None]:
    """Return the relative error of each tenant's responses.

    The function sends requests to the same address and by the same protocol as the client. It first
    sends a request of the smallest size, and a request with as many of the examples as the model
    accepts. It then sends each request of the load (`load_images`) once. Without reference
    responses, the function sends each request twice, and compares both responses. If the responses
    to the same request may differ (`deterministic: false`), the error is None.

    Raises VerificationError if a relative error exceeds the tolerance, or if a model does not
    respond.
    """
    return {tenant.name: _verified(tenant) for tenant in tenants}


def unchecked(relative_errors: Mapping[str, float | None]) -> Iterator[str]:
    """Yield one warning for each tenant whose responses Perseus could not check."""
    for tenant, error in relative_errors.items():
        if error is None:
            yield (
                f"{tenant} gives different responses to the same request (deterministic: false),"
                " so its responses were not checked"
            )


def refuse_cached(server: RunningServer, tenants: Sequence[TenantUnderTest]) -> None:
    """Raise VerificationError if the statistics of the server contain cache hits.

    Call this function after the client has repeated requests, because a cache answers only repeated
    requests.
    """
    for tenant in tenants:
        times = tenant_times(server, tenant.model, tenant.settings.steps)
        if hits := times.cache_hits if times else 0:
            raise VerificationError(
                f"the server answered {hits} requests of {tenant.name} from its response cache,"
                f" not with the model; nothing was measured. Set response_cache {{ enable: false }}"
                f" in the config.pbtxt of {tenant.model!r} and of the models that it calls"
            )


def _verified(tenant: TenantUnderTest) -> float | None:
    smallest, largest = tenant.settings.request_batch_size, tenant.max_batch_size
    sizes = (smallest, min(max(smallest, tenant.count), largest))
    parts = [[i % tenant.count for i in range(size)] for size in sizes] + tenant.load_images
    if tenant.reference is None:
        return _checked_against_itself(tenant, parts)
    return _checked_against(tenant, tenant.reference, parts)


def _checked_against(
    tenant: TenantUnderTest, reference: Reference, parts: Sequence[Sequence[int]]
) -> float | None:
    assert tenant.settings.precision is not None
    limit = max(TOLERANCES[tenant.settings.precision], TOLERANCES[reference.precision])
    scales = reference.scales(limit)
    error = max(
        reference.error(part, answer, scales)
        for part, answer in zip(parts, _answers(tenant, parts), strict=True)
    )
    if not error <= limit:
        raise VerificationError(
            f"the server's responses for {tenant.name} differ from the responses of the original"
            f" model by a relative error of {error:.2g} (allowed: {limit:g}); nothing was measured."
            " For the cause, see server.log"
        )
    return error if reference.is_deterministic else None


def _checked_against_itself(
    tenant: TenantUnderTest, parts: Sequence[Sequence[int]]
) -> float | None:
    calls = [_answers(tenant, parts) for _ in range(2)]
    wanted = tenant.settings.served_model
    if wanted is not None and not wanted.deterministic:
        return None
    return max(
        _repeated(tenant, output, *([each[output] for each in answers] for answers in calls))
        for output in tenant.outputs
    )


def _repeated(
    tenant: TenantUnderTest, output: str, answers: Sequence[Tensor], again: Sequence[Tensor]
) -> float:
    if tenant.has_batches:
        answers, again = _rows(answers), _rows(again)
    if not all(np.isfinite(each).all() for each in (*answers, *again)):
        problem = "has values that are not finite"
    elif (
        not (error := repeated_error(answers, again, is_one_example=tenant.count == 1)) <= REPEATED
    ):
        problem = (
            f"differs by a relative error of {error:.2g} (allowed: {REPEATED:g}) when the same"
            " request is sent again, so its responses cannot be checked"
        )
    else:
        return error
    raise VerificationError(
        f"output {output!r} of the server's responses for {tenant.name} {problem}; nothing was"
        " measured"
    )


def _rows(answers: Sequence[Tensor]) -> list[Tensor]:
    """Return the responses of all batches, one entry per example."""
    return [row for batch in answers for row in np.atleast_1d(batch)]


def _answers(tenant: TenantUnderTest, parts: Sequence[Sequence[int]]) -> Answers:
    try:
        with tenant.transport(parts) as transport:
            answers = [transport.infer(i, ANSWER_S) for i in range(len(parts))]
    except (RequestFailedError, RouteError) as error:
        raise VerificationError(
            f"the server does not respond to requests for {tenant.name}: {error}"
        ) from error
    missing = [name for name in tenant.outputs if any(name not in each for each in answers)]
    if missing:
        raise VerificationError(
            f"the server's responses for {tenant.name} lack the outputs {', '.join(missing)}"
        )
    return answers
