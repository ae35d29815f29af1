"""Tests that each runtime responds like torch, and that Perseus detects wrong responses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from measure_tasks import client, measure_task, tenant
from references import images_and_scores, write_reference

from perseus.host.cpu_instructions import has_bf16
from perseus.measurement.computed_precision import computed_precisions
from perseus.measurement.tenant_under_test import tenants_on
from perseus.measurement.verify import VerificationError, verify
from perseus.models.onnx_precision import convert
from perseus.models.repository import write_tenant
from perseus.serving.launchers.embedded import embedded_triton
from perseus.study.tasks.repository import ServedTenant

CORE = sorted(os.sched_getaffinity(0))[-1:]


@pytest.fixture
def network(exported) -> tuple[Path, Path, dict[str, Any]]:
    """Return the model file, the file with torch's responses, and the record of the export."""
    folder, check = exported
    return folder / "model.onnx", folder / "reference.npz", check


def serve_and_verify(
    network,
    root: Path,
    *tenants: ServedTenant,
    reference: Path | None = None,
    protocol: str = "grpc",
    shared_memory: bool = False,
    computed: dict[str, str | None] | None = None,
):
    """Return the errors of the tenants. `computed` receives the precision of each computation."""
    onnx, true_reference, check = network
    names = [each.name for each in tenants]
    for each in tenants:
        write_tenant(root / "repository", each, onnx, check)
    with embedded_triton(root / "repository", root / "server.log", CORE) as server:
        measured = [
            tenant(
                t.name,
                max_batch_size=t.max_batch_size,
                request_batch_size=min(3, t.max_batch_size),
                precision=t.precision,
            )
            for t in tenants
        ]
        task = measure_task(*measured, client=client(protocol, shared_memory))
        references = dict.fromkeys(names, reference or true_reference)
        under_test = tenants_on(server, task, references)
        if computed is not None:
            computed |= computed_precisions(server, "openvino", under_test)
        return verify(under_test)


def test_all_runtimes_answer_like_torch_side_by_side(network, tmp_path):
    computed: dict[str, str | None] = {}
    errors = serve_and_verify(
        network,
        tmp_path,
        ServedTenant(name="ort", model="model", runtime="onnxruntime"),
        ServedTenant(
            name="ort-two", model="model", runtime="onnxruntime", instances=2, max_batch_size=1
        ),
        ServedTenant(
            name="ort-batched", model="model", runtime="onnxruntime", max_queue_delay_us=500
        ),
        ServedTenant(name="openvino", model="model", runtime="openvino"),
        ServedTenant(name="openvino-bf16", model="model", runtime="openvino", precision="bf16"),
        computed=computed,
    )
    assert len(errors) == 5
    # If the CPU has no bf16 instructions, it computes a bf16 network in fp32.
    assert computed["openvino"] == "fp32"
    assert computed["openvino-bf16"] == ("bf16" if has_bf16() else "fp32")
    assert (errors["openvino-bf16"] < 1e-3) == (computed["openvino-bf16"] == "fp32")
    assert all(error < 1e-3 for name, error in errors.items() if name != "openvino-bf16")


def test_openvino_serves_a_quantised_network(network, tmp_path):
    onnx, reference, check = network
    quantised = tmp_path / "model.int8.onnx"
    convert("int8", onnx, reference, quantised)
    served = ServedTenant(name="int8", model="model", runtime="openvino", precision="int8")
    errors = serve_and_verify((quantised, reference, check), tmp_path, served)
    assert 0.05 < errors["int8"] < 3


@pytest.mark.parametrize(("protocol", "shared_memory"), [("http", False), ("grpc", True)])
def test_answers_are_checked_over_the_path_of_the_load(network, tmp_path, protocol, shared_memory):
    errors = serve_and_verify(
        network,
        tmp_path,
        ServedTenant(name="ort", model="model"),
        protocol=protocol,
        shared_memory=shared_memory,
    )
    assert errors["ort"] < 1e-3


def test_wrong_answers_stop_a_measurement(network, tmp_path):
    images, outputs = images_and_scores(network[1])
    wrong = write_reference(tmp_path / "wrong.npz", images, np.roll(outputs, 1, axis=0))
    with pytest.raises(VerificationError, match="differ from the responses of the original"):
        serve_and_verify(
            network, tmp_path, ServedTenant(name="ort", model="model"), reference=wrong
        )
