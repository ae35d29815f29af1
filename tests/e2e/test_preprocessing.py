"""Tests of a server that preprocesses pictures.

The responses equal the responses of torch. Perseus measures the times and costs of the
preprocessing under load.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from measure_tasks import client, measure_task, tenant

from perseus.measurement.clients import routes_to
from perseus.measurement.live_system import LiveSystem
from perseus.measurement.preprocess_cost import client_preprocess_ms
from perseus.measurement.raw_results import RequestsWriter
from perseus.measurement.tenant_under_test import TenantUnderTest, tenants_on
from perseus.measurement.verify import VerificationError, verify
from perseus.models.picture_export import export_pictures
from perseus.models.pictures import Pictures
from perseus.models.repository import ModelFiles, write_repository
from perseus.serving.launchers.embedded import embedded_triton
from perseus.serving.running_server import RunningServer
from perseus.study.tasks.repository import RepositoryTask, ServedEnsemble, ServedTenant
from perseus.traffic.arrivals import Arrivals
from perseus.traffic.client import Client

CORE = sorted(os.sched_getaffinity(0))[-1:]
SERVER = tenant("a", preprocessing="server", max_batch_size=4)
CLIENT = tenant("b", preprocessing="client", max_batch_size=4)
ENSEMBLE = ServedEnsemble(
    tenant="a",
    preprocess="a.preprocess",
    network="a.network",
    max_batch_size=4,
    processes=1,
)


@pytest.fixture(scope="module")
def pictures(export_task, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("pictures") / "pictures.npz"
    export_pictures(export_task, path)
    return path


@contextmanager
def served(exported, pictures: Path, root: Path) -> Iterator[RunningServer]:
    """Serve both tenants, `a` as an ensemble. The repository contains the responses of torch."""
    (folder, check), repository = exported, root / "repository"
    networks = tuple(
        ServedTenant(
            name=name, model="m", max_batch_size=4, max_queue_delay_us=0, ensemble=ensemble
        )
        for name, ensemble in (("a.network", ENSEMBLE), ("b", None))
    )
    (root / "check.json").write_text(json.dumps(check))
    model_files = [ModelFiles(folder / "model.onnx", root / "check.json", pictures)] * 2
    write_repository(repository, RepositoryTask(tenants=networks), model_files, is_variant=False)
    with embedded_triton(repository, root / "server.log", CORE) as server:
        yield server


def tenants(server: RunningServer, pictures: Path, **way: Any) -> list[TenantUnderTest]:
    task = measure_task(SERVER, CLIENT, client=client(**way))
    return tenants_on(server, task, dict.fromkeys("ab", pictures))


def test_pictures_are_answered_as_torch_does_over_every_path(exported, pictures, tmp_path):
    """The test sends single files, and batches of files of different lengths."""
    with served(exported, pictures, tmp_path) as server:
        for protocol, shared_memory in (("grpc", False), ("http", False), ("grpc", True)):
            asked = tenants(server, pictures, protocol=protocol, shared_memory=shared_memory)
            errors = verify(asked)
            assert errors.keys() == {"a", "b"} and max(errors.values()) < 1e-3
        turned = Pictures.read(pictures).files[::-1]
        others = Pictures(turned, asked[0].pictures.preprocessing)
        with pytest.raises(VerificationError, match="differ from the responses of the original"):
            verify([replace(asked[0], pictures=others)])


def test_what_is_no_picture_is_an_error_that_says_so(exported, pictures, tmp_path):
    with served(exported, pictures, tmp_path) as server:
        (asked, _) = tenants(server, pictures)
        asked.pictures.files[0][:] = 7
        with pytest.raises(VerificationError, match="preprocess: cannot identify image file"):
            verify([asked])


@pytest.mark.alone
def test_under_load_it_is_known_where_time_went_and_what_a_request_costs(
    exported, pictures, tmp_path
):
    with ExitStack() as stack:
        server = stack.enter_context(served(exported, pictures, tmp_path))
        asked = tenants(server, pictures)
        routes = stack.enter_context(routes_to(asked))
        clients = [
            stack.enter_context(
                Client(each.name, routes[each.name], [0], steps=each.settings.steps)
            )
            for each in asked
        ]
        writer = stack.enter_context(RequestsWriter(tmp_path / "requests.parquet"))
        system = LiveSystem(
            server,
            clients,
            Arrivals("poisson", 1.0),
            [np.random.default_rng(i) for i in range(2)],
            writer,
            server_cores=CORE,
            client_cores=[0],
            longest_sla_s=1.0,
        )
        for rates_rps in ((20.0, 0.0), (0.0, 20.0)):
            with system.offer(rates_rps, 3.0) as load:
                load.until(3.0)
        with system.offer_closed((8, 0), 2.0) as load:  # seven of eight requests wait in the queue
            load.until(2.0)
    (by_server, _), (_, by_client), (busy, _) = (each.decompositions for each in system.ended)
    assert by_server.compute_ms > 1.5 * by_client.compute_ms  # with the time of the preprocessing
    # the queue time of the steps: the ensemble itself has no queue
    assert busy.queue_ms > busy.compute_ms
    (costs, _), (_, plain), _ = (each.cpu for each in system.ended)
    preprocess_ms = client_preprocess_ms(asked)["a"]
    assert costs.server_cpu_ms > plain.server_cpu_ms + 0.5 * preprocess_ms
    assert 0 < costs.client_cpu_ms < 5 and 0 < plain.client_cpu_ms < 5
