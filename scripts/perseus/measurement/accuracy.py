"""Measure the top-1 accuracy of a model on a running server, with labelled images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from perseus.measurement.tenant_under_test import ANSWER_S, TenantUnderTest
from perseus.measurement.verify import VerificationError
from perseus.models.labelled import Labelled
from perseus.models.pictures import as_batch
from perseus.traffic.connect import connect
from perseus.traffic.route import INPUT, OUTPUT, Batch, RouteError
from perseus.traffic.transport import RequestFailedError

REQUESTS = 16
"""Number of requests whose inputs are in memory at the same time."""


@dataclass(frozen=True)
class Accuracy:
    """The number of labelled images, and how many of them got the correct class (top-1)."""

    images: int
    correct: int


def accuracy(tenant: TenantUnderTest, path: Path) -> Accuracy:
    """Count the labelled images for which the correct class has the highest score.

    The requests have as many images as the requests of the load, and use the same protocol. Raises
    VerificationError if the model does not respond.
    """
    labelled, size = Labelled.read(path), tenant.settings.request_batch_size
    count = len(labelled.classes)
    parts = [range(first, first + size) for first in range(0, count, size)]
    found = [
        _classes(tenant, labelled, parts[first : first + REQUESTS])
        for first in range(0, len(parts), REQUESTS)
    ]
    correct = np.concatenate(found)[:count] == labelled.classes
    return Accuracy(count, int(correct.sum()))


def _classes(tenant: TenantUnderTest, labelled: Labelled, parts: list[range]) -> NDArray[np.int64]:
    """Return the class with the highest score for each image. If too few images are left for the
    last request, this request also contains the first images."""
    count = len(labelled.classes)
    batches = [_inputs(tenant, labelled, [i % count for i in part]) for part in parts]
    try:
        with tenant.route_of(batches) as route, connect(route) as transport:
            scores = [transport.infer(i, ANSWER_S)[OUTPUT] for i in range(len(parts))]
    except (RequestFailedError, RouteError) as error:
        raise VerificationError(
            f"the server does not respond to requests for {tenant.name}: {error}"
        ) from error
    return np.concatenate(scores).argmax(axis=-1)


def _inputs(tenant: TenantUnderTest, labelled: Labelled, images: Sequence[int]) -> Batch:
    if tenant.settings.preprocessing == "server":
        return {INPUT: as_batch([labelled.pictures.files[i] for i in images])}
    return {INPUT: labelled.tensors(images)}
