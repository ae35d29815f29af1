"""A model that a server already has receives the images of a study, preprocessed as stated."""

from __future__ import annotations

import numpy as np
import pytest
from e2e.test_server import backends
from PIL import Image
from triton_elsewhere import triton_elsewhere
from unit.study.test_read import cells, load, scenario
from unit.study.test_remote_config import remote

from perseus.measurement.tenant_under_test import tenants_on
from perseus.measurement.verify import refuse_cached, verify
from perseus.serving.launchers.remote import remote_server
from perseus.study import planning

__all__ = ["backends"]

CORNERS = """
import numpy as np
import triton_python_backend_utils as pb_utils
from perseus_tensors import tensor

class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(each) for each in requests]

    def answer(self, request):
        images = np.from_dlpack(pb_utils.get_input_tensor_by_name(request, "images"))
        left, right = images[..., 0, 0, :], images[..., -1, -1, :]
        return pb_utils.InferenceResponse(
            [tensor("left", left.copy()), tensor("right", right.copy())]
        )
"""
CONFIG = """
name: "{name}" backend: "corners" max_batch_size: {batch}
input {{ name: "images" data_type: TYPE_FP32 dims: [{size}] }}
output {{ name: "left" data_type: TYPE_FP32 dims: 3 }}
output {{ name: "right" data_type: TYPE_FP32 dims: 3 }}
instance_group {{ count: 1 kind: KIND_CPU }}
"""
SIZES = {"batches": (4, "4, 6, 3"), "open": (0, "-1, -1, 3")}
COLOURS = [((250, 20 * i, 0), (0, 10 * i, 250)) for i in range(5)]
SCALE, MEAN, STD = 1 / 255, (0.5, 0.4, 0.3), (0.2, 0.3, 0.4)


def halves(path, colours):
    """Write an image whose left half has the first colour and whose right half has the second."""
    image = Image.new("RGB", (60, 40), colours[0])
    image.paste(colours[1], (30, 0, 60, 40))
    image.save(path)


def preprocessed(colour):
    return (np.array(colour) * SCALE - MEAN) / STD


@pytest.mark.parametrize("protocol", ["grpc", "http"])
@pytest.mark.parametrize("name", SIZES)
def test_a_served_model_gets_the_images_of_the_study(tmp_path, backends, name, protocol):
    (backends / "corners").mkdir()
    (backends / "corners" / "model.py").write_text(CORNERS)
    (tmp_path / "models" / name / "1").mkdir(parents=True)
    batch, size = SIZES[name]
    config = tmp_path / "models" / name / "config.pbtxt"
    config.write_text(CONFIG.format(name=name, batch=batch, size=size))
    (tmp_path / "photos").mkdir()
    for number, colours in enumerate(COLOURS):
        halves(tmp_path / "photos" / f"{number}.png", colours)
    (tmp_path / "elsewhere").mkdir()
    with triton_elsewhere(
        tmp_path / "elsewhere",
        backends=backends,
        repository=tmp_path / "models",
        control="none",
    ) as elsewhere:
        study = load(
            {
                "models": [
                    {
                        "name": "mine",
                        "served_model": name,
                        "sla": {"latency_ms": 50},
                        "images": str(tmp_path / "photos"),
                        "layout": "nhwc",
                        "scale": SCALE,
                        "mean": list(MEAN),
                        "std": list(STD),
                        **({"shape": {"images": [4, 6]}} if name == "open" else {}),
                    }
                ],
                "servers": [remote(**elsewhere.remote().model_dump(exclude_none=True))],
                "scenarios": [scenario("mine", name="mine", servers=["far"])],
                "measurement": {"client": {"protocol": protocol}},
            }
        )
        task = planning.measure_task(study, cells(study)[0])
        with remote_server(elsewhere.remote(), None, tmp_path / "log", say=print) as server:
            (tenant,) = tenants_on(server, task, {})
            assert verify([tenant]) == {"mine": 0}
            refuse_cached(server, [tenant])
            with tenant.transport([[i] for i in range(len(COLOURS))]) as transport:
                answers = [transport.infer(i, 10.0) for i in range(len(COLOURS))]
    assert tenant.max_batch_size == max(1, batch)
    for answer, (left, right) in zip(answers, COLOURS, strict=True):
        np.testing.assert_allclose(answer["left"].ravel(), preprocessed(left), rtol=1e-5)
        np.testing.assert_allclose(answer["right"].ravel(), preprocessed(right), rtol=1e-5)
