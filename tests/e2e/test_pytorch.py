"""With the runtime pytorch, a real server answers like torch, also in padded batches."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from references import images_and_scores
from tritonclient.grpc import InferenceServerClient, InferInput
from tritonclient.grpc import model_config_pb2 as pb

from perseus.models.answers import relative_error, signal
from perseus.models.repository import write_tenant
from perseus.models.torch_export import export_program
from perseus.serving.launchers.embedded import embedded_triton
from perseus.study.tasks.repository import ServedTenant

CORE = sorted(os.sched_getaffinity(0))[-1:]


def tenant(name: str, **more: Any) -> ServedTenant:
    return ServedTenant(
        name=name,
        model="model",
        runtime="pytorch",
        model_file="model.pt2",
        max_batch_size=4,
        **more,
    )


TENANTS = (
    tenant("plain"),
    tenant("padded", max_queue_delay_us=200_000),
    tenant("half", precision="fp16"),
)


@pytest.fixture
def reference(exported) -> Path:
    return exported[0] / "reference.npz"


@pytest.fixture(scope="module")
def server(export_task, exported, tmp_path_factory):
    root = tmp_path_factory.mktemp("served")
    program, (_, check) = root / "model.pt2", exported
    told = export_program(export_task, program)
    assert told["relative_error"] < 1e-3
    for tenant in TENANTS:
        write_tenant(root / "repository", tenant, program, check)
    path = root / "repository" / "padded" / "config.pbtxt"
    config = text_format.Parse(path.read_text(), pb.ModelConfig())
    config.parameters["captured_batch_sizes"].string_value = "1,4"  # as Perseus sets it on a GPU
    path.write_text(text_format.MessageToString(config))
    with embedded_triton(root / "repository", root / "server.log", CORE) as running:
        yield running


def request(images) -> InferInput:
    made = InferInput("input", list(images.shape), "FP32")
    made.set_data_from_numpy(np.ascontiguousarray(images))
    return made


@pytest.mark.parametrize(("name", "limit"), [("plain", 1e-3), ("padded", 1e-3), ("half", 0.5)])
def test_every_batch_size_is_answered_like_torch(server, reference, name, limit):
    images, expected = images_and_scores(reference)
    with InferenceServerClient(server.grpc_address) as client:
        for first, last in ((0, 1), (1, 3), (0, 3), (0, 4), (3, 4)):
            answer = client.infer(name, [request(images[first:last])]).as_numpy("output")
            error = relative_error(answer, expected[first:last], signal(expected))
            assert error < limit, (first, last)
            if name == "half":
                assert error > 1e-5  # the network computed in half precision


def executions(client: InferenceServerClient) -> int:
    return client.get_inference_statistics("padded").model_stats[0].execution_count


def test_requests_that_share_a_padded_batch_get_their_own_answers(server, reference):
    images, expected = images_and_scores(reference)
    with InferenceServerClient(server.grpc_address) as client:
        before = executions(client)
        with ThreadPoolExecutor(3) as pool:
            asked = [request(images[i : i + 1]) for i in range(3)]
            results = list(pool.map(lambda each: client.infer("padded", [each]), asked))
        for i, result in enumerate(results):
            answer = result.as_numpy("output")
            assert relative_error(answer, expected[i : i + 1], signal(expected)) < 1e-3
        assert executions(client) - before < 3, "no two requests shared a batch"
