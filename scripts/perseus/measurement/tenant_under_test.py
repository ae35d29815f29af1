"""Describe a tenant on a running server: the examples in its requests, and the routes of its
requests (addresses, protocol and contents)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from perseus.models.networks import ExportError
from perseus.models.own_examples import own_examples
from perseus.models.pictures import Pictures, as_batch
from perseus.models.reference import Reference
from perseus.models.tensors import Tensor
from perseus.serving.failures import ServerError
from perseus.serving.open_models import read_open_model
from perseus.serving.running_server import CONFIGURATION, RunningServer
from perseus.serving.served_models import ModelOnServer, read_served_model
from perseus.study.tasks.measure import MeasuredTenant, MeasureTask, ServedModel
from perseus.traffic.connect import connect
from perseus.traffic.route import INPUT, OUTPUT, Batch, Route, request_images, route_to
from perseus.traffic.transport import Transport

OpenRoute = Callable[[str, Sequence[Batch], float, Sequence[str]], AbstractContextManager[Route]]
"""Function that opens the route of a model's requests.

Its arguments are the name of the model, the inputs of each request, the timeout in seconds, and the
names of the outputs.
"""

ANSWER_S = 120.0
SHIFTS, UNSEEN_MIB = 10, 32
"""To make requests that the server has not seen, Perseus shifts the values of the examples. It uses
at most SHIFTS different shifts, and about UNSEEN_MIB MiB of memory for all these requests."""


@dataclass(frozen=True)
class TenantUnderTest:
    """A tenant, and the settings of its model on the server.

    `examples` contains n examples: each input of the model by its name, with the shape (n, ...).
    Images have the shape (n, 3, height, width). `reference` contains the correct responses to the
    examples, or is None for a model that the study does not deploy. If `has_batches` is false, the
    model has no batch dimension, and a request contains one example. If the server already had the
    model, `served` describes the model. If the tenant has preprocessing, `pictures` contains the
    encoded images.
    """

    settings: MeasuredTenant
    model: str
    examples: Mapping[str, Tensor]
    reference: Reference | None
    max_batch_size: int
    dynamic_batching: bool
    open_route: OpenRoute
    outputs: tuple[str, ...] = (OUTPUT,)
    has_batches: bool = True
    served: ModelOnServer | None = None
    pictures: Pictures | None = None

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def steps(self) -> tuple[str, ...] | None:
        """Return the names of the models in the tenant's ensemble, in the order of the computation.

        The result is empty if the model is not an ensemble. It is None for an ensemble that the
        server already had, because Perseus does not read the models of such an ensemble.
        """
        is_served_ensemble = self.served is not None and self.served.backend == "ensemble"
        return None if is_served_ensemble else self.settings.steps

    @property
    def count(self) -> int:
        """Return the number of examples."""
        return len(next(iter(self.examples.values())))

    @property
    def load_images(self) -> list[list[int]]:
        """Return the requests that the client sends in turn, again and again.

        A request is the list of the indices of its examples.
        """
        return request_images(self.count, self.settings.request_batch_size)

    def batches(self, parts: Sequence[Sequence[int]]) -> list[Mapping[str, Tensor]]:
        """Return the inputs of requests. `parts` contains, for each request, the indices of its
        examples.

        Images are tensors, or encoded files if the server preprocesses images.
        """
        if self.pictures is not None and self.settings.preprocessing == "server":
            files = self.pictures.files
            return [{INPUT: as_batch([files[i] for i in part])} for part in parts]
        rows = [list(part) if self.has_batches else part[0] for part in parts]
        return [
            {name: self._sent(np.asarray(values[row])) for name, values in self.examples.items()}
            for row in rows
        ]

    def _sent(self, values: Tensor) -> Tensor:
        """Return the values in the shape that the model configuration states.

        Triton needs a dimension besides the batch, so a scalar gets a dimension of size 1.
        """
        is_served = self.reference is None
        return values if is_served or values.ndim > self.has_batches else values[..., np.newaxis]

    @property
    def request_bytes(self) -> float:
        """Return the mean size of the inputs of a request in bytes."""
        requests = self.batches(self.load_images)
        return sum(tensor.nbytes for each in requests for tensor in each.values()) / len(requests)

    def load_route(self, timeout_s: float) -> AbstractContextManager[Route]:
        """Prepare the address and the contents of the requests that the client sends.

        A request times out after `timeout_s` seconds.
        """
        return self._route(self.load_images, timeout_s)

    @contextmanager
    def transport(self, parts: Sequence[Sequence[int]]) -> Iterator[Transport]:
        """Open a connection for single requests. `parts` contains, for each request, the indices of
        its examples.

        Raises RouteError if the route of the requests cannot be prepared, and RequestFailedError if
        the server does not accept the connection.
        """
        with self._route(parts, ANSWER_S) as route, connect(route) as transport:
            yield transport

    def unseen_batches(self) -> list[Mapping[str, Tensor]]:
        """Return inputs that no other request has, so no cache can answer requests with them.

        The inputs are the values of the examples, shifted by a few places. The list is empty if the
        server gets images as encoded files.
        """
        if self.pictures is not None and self.settings.preprocessing == "server":
            return []
        most = math.ceil(UNSEEN_MIB * 2**20 / self.request_bytes / len(self.load_images))
        places = max(values[0].size for values in self.examples.values())
        shifts = range(1, min(1 + min(SHIFTS, most), places))
        return list(chain.from_iterable(map(self._shifted_requests, shifts)))

    def _shifted_requests(self, places: int) -> list[Mapping[str, Tensor]]:
        examples = {name: _shifted(values, places) for name, values in self.examples.items()}
        return replace(self, pictures=None, examples=examples).batches(self.load_images)

    def route_of(self, batches: Sequence[Batch]) -> AbstractContextManager[Route]:
        """Prepare requests with the inputs `batches`, and a timeout of ANSWER_S seconds."""
        return self.open_route(self.model, batches, ANSWER_S, self.outputs)

    def _route(
        self, parts: Sequence[Sequence[int]], timeout_s: float
    ) -> AbstractContextManager[Route]:
        return self.open_route(self.model, self.batches(parts), timeout_s, self.outputs)


def _shifted(values: Tensor, places: int) -> Tensor:
    """Return the values of each example, shifted cyclically by `places`."""
    return np.roll(values.reshape(len(values), -1), places, axis=1).reshape(values.shape)


def tenants_on(
    server: RunningServer, task: MeasureTask, references: Mapping[str, Path]
) -> list[TenantUnderTest]:
    """Return the tenants of a cell.

    `references` contains the file with the reference responses of each tenant whose model the study
    deploys. Raises ServerError if the server lacks a model, or if Perseus cannot measure a model
    that the server already has.
    """
    open_route = partial(route_to, server, task.client)
    return [
        _deployed(tenant, references[tenant.name], open_route)
        if tenant.served_model is None
        else _served(server, tenant, tenant.served_model, task.seed, open_route)
        for tenant in task.tenants
    ]


def _deployed(tenant: MeasuredTenant, path: Path, open_route: OpenRoute) -> TenantUnderTest:
    assert tenant.max_batch_size is not None and tenant.dynamic_batching is not None
    with np.load(path) as arrays:
        reference = Reference.of(arrays)
        pictures = Pictures.of(arrays) if tenant.preprocessing else None
    return TenantUnderTest(
        tenant,
        tenant.name,
        reference.inputs,
        reference,
        tenant.max_batch_size if reference.has_batches else 1,
        tenant.dynamic_batching,
        open_route,
        reference.outputs,
        has_batches=reference.has_batches,
        pictures=pictures,
    )


def _examples(found: ModelOnServer, wanted: ServedModel, seed: int) -> dict[str, Tensor]:
    try:
        return own_examples(wanted.examples, found.inputs, seed)
    except ExportError as error:
        raise ServerError(f"{found.name!r} cannot be measured: {error}") from error


def _served(
    server: RunningServer,
    tenant: MeasuredTenant,
    wanted: ServedModel,
    seed: int,
    open_route: OpenRoute,
) -> TenantUnderTest:
    read = read_served_model if CONFIGURATION in server.extensions else read_open_model
    found = read(server, wanted, tenant.request_batch_size)
    return TenantUnderTest(
        tenant,
        found.name,
        _examples(found, wanted, seed),
        None,
        max(1, found.max_batch_size),
        bool(found.dynamic_batching),
        open_route,
        tuple(each.name for each in found.outputs),
        has_batches=found.max_batch_size > 0,
        served=found,
    )
