"""Check that a server answers as torch did when the model was exported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perseus.models.answers import TOLERANCES, relative_error, signal
from perseus.serving.running_server import RunningServer
from perseus.traffic.connect import connect
from perseus.traffic.route import RouteError, request_images, route_to
from perseus.traffic.transport import RequestFailedError

ANSWER_S = 120.0


class VerificationError(RuntimeError):
    """A server answers otherwise than torch."""


def verify(
    server: RunningServer, cell: Mapping[str, Any], references: Mapping[str, Path]
) -> dict[str, float]:
    """The relative error of each tenant's answers, over the very path that will be measured.

    The requests are one image alone, all as one batch, and those that the load will consist of.
    Raises VerificationError when an error is above the tolerance, or when a model does not answer.
    """
    errors: dict[str, float] = {}
    for tenant in cell["tenants"]:
        name = tenant["name"]
        with np.load(references[name]) as arrays:
            images, expected = arrays["input"], arrays["output"]
        whole = list(range(min(len(images), tenant["max_batch_size"])))
        parts = [[0], whole, *request_images(len(images), tenant["request_batch_size"])]
        answers = _answers(server, name, [images[part] for part in parts], cell["client"])
        errors[name] = max(
            relative_error(answer, expected[part], signal(expected))
            for answer, part in zip(answers, parts, strict=True)
        )
        limit = TOLERANCES[tenant["precision"]]
        if not errors[name] <= limit:
            raise VerificationError(
                f"the server's answers of {name} differ from torch's by a relative error of"
                f" {errors[name]:.2g} (allowed: {limit:g}); nothing was measured. See server.log"
            )
    return errors


def _answers(
    server: RunningServer, name: str, batches: list[NDArray], client: Mapping[str, Any]
) -> list[NDArray]:
    try:
        with (
            route_to(server, name, batches, client, ANSWER_S) as route,
            connect(route) as transport,
        ):
            return [transport.infer(i, ANSWER_S) for i in range(len(batches))]
    except (RequestFailedError, RouteError) as error:
        raise VerificationError(f"{name} does not answer: {error}") from error
