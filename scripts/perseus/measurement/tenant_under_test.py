"""A tenant on a running server: what its requests may carry, and how they reach the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from perseus.serving.running_server import RunningServer
from perseus.study.tasks.measure import MeasuredTenant, MeasureTask
from perseus.traffic.connect import connect
from perseus.traffic.route import Batch, Route, request_images, route_to
from perseus.traffic.transport import Transport

OpenRoute = Callable[[str, Sequence[Batch], float], AbstractContextManager[Route]]
"""Opens the route of a model's requests with these inputs, which time out after so many seconds."""

ANSWER_S = 120.0


@dataclass(frozen=True)
class TenantUnderTest:
    """A tenant with the reference of its model.

    `images`, shape (n, 3, height, width), and torch's `answers` to them, shape (n, classes).
    """

    settings: MeasuredTenant
    images: Batch
    answers: NDArray[np.float32]
    open_route: OpenRoute

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def load_images(self) -> list[list[int]]:
        """The images of each request that the load takes turns with."""
        return request_images(len(self.images), self.settings.request_batch_size)

    def batches(self, parts: Sequence[Sequence[int]]) -> list[Batch]:
        """Inputs of requests that carry these images."""
        return [self.images[list(part)] for part in parts]

    def load_route(self, timeout_s: float) -> AbstractContextManager[Route]:
        """The route of the load."""
        return self.open_route(self.name, self.batches(self.load_images), timeout_s)

    @contextmanager
    def transport(self, parts: Sequence[Sequence[int]]) -> Iterator[Transport]:
        """A connection for single requests that carry these images; `infer` waits `ANSWER_S`.

        Raises RequestFailedError and RouteError.
        """
        with (
            self.open_route(self.name, self.batches(parts), ANSWER_S) as route,
            connect(route) as transport,
        ):
            yield transport


def tenants_on(
    server: RunningServer, task: MeasureTask, references: Mapping[str, Path]
) -> list[TenantUnderTest]:
    """The tenants of a cell; `references` are the files of their models, by tenant."""
    open_route = partial(route_to, server, task.client)
    tenants = []
    for tenant in task.tenants:
        with np.load(references[tenant.name]) as arrays:
            images, answers = arrays["input"], arrays["output"]
        tenants.append(TenantUnderTest(tenant, images, answers, open_route))
    return tenants
