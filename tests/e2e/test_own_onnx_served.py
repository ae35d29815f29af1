"""Tests that ONNX Runtime and OpenVINO serve ONNX files of users as a study prepares the files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from measure_tasks import client, measure_task, tenant
from onnx import ModelProto, helper
from onnx_files import detector, network, of_all_types, of_scalar, recurrent, time_first, with_nodes
from onnxruntime import quantization
from onnxruntime.transformers.float16 import convert_float_to_float16

from perseus.measurement.first_inferences import first_inferences
from perseus.measurement.tenant_under_test import tenants_on
from perseus.measurement.verify import verify
from perseus.models.answers import TOLERANCES
from perseus.models.own_onnx import take_onnx
from perseus.models.repository import write_tenant
from perseus.serving.launchers.embedded import embedded_triton
from perseus.study.model import Precision
from perseus.study.tasks.own_onnx import OwnOnnxTask
from perseus.study.tasks.repository import ServedTenant

# This node replaces an Unsqueeze without axes, for which OpenVINO would add a dimension.
LAST = helper.make_node("Identity", ["input"], ["scores"])
CORE = sorted(os.sched_getaffinity(0))[-1:]
MODELS = {
    "wide": with_nodes(network(pixels=(32, 48)), LAST),
    "batch-of-three": with_nodes(network(3, by=3), LAST),
    "recogniser": time_first(),
    "detector": detector(),
    "all-types": of_all_types(),
    "scalar": of_scalar(),
    "recurrent": recurrent(state=2),
}
PRECISIONS: dict[str, Precision] = {"dynamic": "int8", "fixed-scales": "int8", "half": "fp16"}
SHAPES = {"recurrent": {"x": (1, 4), "state": (3,)}}


class Noise(quantization.CalibrationDataReader):
    """Seeded inputs that give the quantisation the range of each activation."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.inputs = iter([{"x": rng.standard_normal((1, 3, 32, 32), np.float32)}] * 4)

    def get_next(self):
        return next(self.inputs, None)


def of_other_precisions(folder: Path) -> dict[str, ModelProto]:
    """Return one network in other precisions: quantised with dynamic or fixed scales, and fp16."""
    plain, dynamic, fixed = (str(folder / f"{name}.onnx") for name in ("plain", "dynamic", "fixed"))
    network_32 = with_nodes(network(), LAST)
    onnx.save(network_32, plain)
    quantization.quantize_dynamic(plain, dynamic)
    quantization.quantize_static(plain, fixed, Noise())
    return {
        "dynamic": onnx.load(dynamic),
        "fixed-scales": onnx.load(fixed),
        "half": convert_float_to_float16(network_32, keep_io_types=True),
    }


@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
def test_what_is_taken_is_served_with_its_names_types_and_shapes(tmp_path, runtime):
    references = {}
    models = MODELS | of_other_precisions(tmp_path)
    for name, model in models.items():
        folder = tmp_path / name
        folder.mkdir()
        onnx.save(model, folder / "own.onnx")
        files = folder / "model.onnx", folder / "reference.npz"
        task = OwnOnnxTask(shape=SHAPES.get(name, {}))
        record = take_onnx(task, folder / "own.onnx", *files)
        served = ServedTenant(name=name, model=name, runtime=runtime)
        write_tenant(tmp_path / "repository", served, files[0], record)
        references[name] = files[1]
    with embedded_triton(tmp_path / "repository", tmp_path / "server.log", CORE) as server:
        for protocol, shared_memory in (("grpc", False), ("http", False), ("grpc", True)):
            asked = [tenant(name, precision="fp32", max_batch_size=8) for name in models]
            task = measure_task(*asked, client=client(protocol, shared_memory))
            tenants = tenants_on(server, task, references)
            assert {each.max_batch_size for each in tenants if not each.has_batches} == {1}
            first_inferences(tenants)
            errors = verify(tenants)
            assert set(errors) == set(models)
            assert all(errors[name] < TOLERANCES[PRECISIONS.get(name, "fp32")] for name in models)
