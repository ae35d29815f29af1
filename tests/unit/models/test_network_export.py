"""Tests of torchvision's detectors and segmenters as ONNX: tensor names and responses."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from perseus.models import network_export, own_files
from perseus.models.architectures import Classifier, Detector, of_library
from perseus.models.network_export import export_network
from perseus.models.networks import ExportError, build, import_torchvision, require_fit
from perseus.models.onnx_network import OnnxNetwork
from perseus.models.reference import Reference
from perseus.models.tensors import ModelTensors, TensorSpec
from perseus.study.model import Model
from perseus.study.tasks.network import NetworkTask
from perseus.study.tasks.own_examples import OwnExamples

SEGMENTER = "torchvision/lraspp_mobilenet_v3_large"
DETECTOR = NetworkTask(architecture="torchvision/ssdlite320_mobilenet_v3_large")
PX = 64


def exported(folder, **task):
    asked = NetworkTask(architecture=SEGMENTER, input_size=PX, **task)
    return export_network(asked, folder / "model.onnx", folder / "reference.npz")


@pytest.fixture(scope="module")
def segmenter(tmp_path_factory):
    """Return the folder with the export of a segmenter, and the record.

    Tests only read the folder.
    """
    folder = tmp_path_factory.mktemp("segmenter")
    return folder, exported(folder)


@pytest.fixture(scope="module")
def detector(tmp_path_factory):
    """Return the folder with the export of a detector, and the record.

    Tests only read the folder.
    """
    folder = tmp_path_factory.mktemp("detector")
    return folder, export_network(DETECTOR, folder / "model.onnx", folder / "reference.npz")


@pytest.fixture
def written(monkeypatch):
    """Return a function that replaces torch's export by a copy of the network in a folder."""

    def of(folder):
        def write(network, example, path, outputs, **how):
            shutil.copy(folder / "model.onnx", path)

        monkeypatch.setattr(network_export, "write_onnx", write)

    return of


def test_a_segmenter_is_served_in_batches_as_torch_computes_it(segmenter):
    folder, record = segmenter
    tensors = ModelTensors.of(record)
    assert tensors.has_batches
    assert tensors.inputs == (TensorSpec("input", "FP32", (3, PX, PX)),)
    assert [(each.name, each.datatype) for each in tensors.outputs] == [("out", "FP32")]
    assert record["notes"] == []
    assert record["relative_error_to_torch"] < 1e-3
    assert (record["architecture"], record["weights"]) == (SEGMENTER, "random")
    reference = Reference.read(folder / "reference.npz")
    network = OnnxNetwork(str(folder / "model.onnx"), "it")
    batch = network.answer(reference.given([2, 0, 1]))["out"]
    assert batch.shape == (3, 21, PX, PX)
    np.testing.assert_allclose(batch, reference.expected([2, 0, 1])["out"], rtol=1e-3, atol=1e-3)


def test_a_detector_is_served_one_image_a_request_with_what_it_finds(detector):
    folder, record = detector
    tensors = ModelTensors.of(record)
    assert not tensors.has_batches
    assert tensors.inputs == (TensorSpec("input", "FP32", (1, 3, 320, 320)),)
    assert {each.name: (each.datatype, len(each.dims)) for each in tensors.outputs} == {
        "boxes": ("FP32", 2),
        "scores": ("FP32", 1),
        "labels": ("INT64", 1),
    }
    why = "does not support batches, so each request has one example: the first size"
    assert why in record["notes"][0]
    assert record["relative_error_to_torch"] < 1e-3
    assert Reference.read(folder / "reference.npz").sorted_by == "scores"


def test_an_export_of_a_detector_with_other_boxes_is_refused(
    detector, written, tmp_path, monkeypatch
):
    written(detector[0])
    torch_answers = network_export._reference

    def moved(*asked):
        reference = torch_answers(*asked)
        answers = [each | {"boxes": each["boxes"] + 10} for each in reference.answers]
        return replace(reference, answers=answers)

    monkeypatch.setattr(network_export, "_reference", moved)
    with pytest.raises(ExportError, match="responds differently after the export"):
        export_network(DETECTOR, tmp_path / "model.onnx", tmp_path / "reference.npz")


def test_where_torch_cannot_leave_the_batch_open_it_is_fixed_and_said(tmp_path, monkeypatch):
    write, batches = network_export.write_onnx, []

    def fixed_only(network, example, *, is_batch_open=True, **to):
        batches.append(len(example))
        if is_batch_open:
            raise ExportError("torch cannot export this network to ONNX: no.\nA long trace")
        return write(network, example, is_batch_open=False, **to)

    monkeypatch.setattr(network_export, "write_onnx", fixed_only)
    record = exported(tmp_path)
    assert batches == [2, 1]
    assert record["notes"][0] == (
        f"{SEGMENTER} does not support batches after the export: torch cannot export this network"
        " to ONNX: no."
    )
    assert not any(str(tmp_path) in note or "/tmp" in note for note in record["notes"])


def test_images_are_scaled_as_the_network_wants(segmenter, written, tmp_path):
    written(segmenter[0])
    images = []
    for number in range(4):
        images.append(str(tmp_path / f"{number}.png"))
        Image.new("RGB", (90, 70), (255, 60 * number, 0)).save(images[-1])
    exported(tmp_path, examples=OwnExamples(images=tuple(images)))
    seen = Reference.read(tmp_path / "reference.npz").inputs["input"]
    assert seen.shape == (4, 3, PX, PX)
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    np.testing.assert_allclose(
        seen[2, :, 5, 5], (np.array([1, 120 / 255, 0]) - mean) / std, rtol=1e-5
    )


def test_weights_of_a_file_may_tell_apart_other_classes(tmp_path):
    torch, torchvision = import_torchvision()
    of = of_library("torchvision/fcn_resnet50")
    options = {"weights": None, "weights_backbone": None, "num_classes": 3, "aux_loss": True}
    network = torchvision.models.get_model(of.name, **options)
    torch.save(network.state_dict(), tmp_path / "tuned.pt")
    found = build(of, str(tmp_path / "tuned.pt"), np.empty(0)).eval()
    assert {name: each.shape[1] for name, each in found(torch.zeros(1, 3, 64, 64)).items()} == {
        "out": 3,
        "aux": 3,
    }


@pytest.mark.parametrize(
    "name",
    [
        "ssdlite320_mobilenet_v3_large",
        "retinanet_resnet50_fpn",
        "fasterrcnn_mobilenet_v3_large_fpn",
    ],
)
def test_weights_of_a_detector_may_tell_apart_other_classes(tmp_path, name):
    torch, _ = import_torchvision()
    of = of_library(f"torchvision/{name}")
    with torch.device("meta"):
        shapes = {key: value.shape for key, value in of.bare(classes=5).state_dict().items()}
    torch.save({key: torch.zeros(()).expand(shapes[key]) for key in shapes}, tmp_path / "tuned.pt")
    require_fit(of, tmp_path / "tuned.pt")


@pytest.mark.parametrize(
    ("architecture", "size"),
    [
        ("lraspp_mobilenet_v3_large", 520),
        ("ssd300_vgg16", 300),
        ("ssdlite320_mobilenet_v3_large", 320),
        ("fasterrcnn_mobilenet_v3_large_320_fpn", 320),
        ("retinanet_resnet50_fpn", 800),
    ],
)
def test_input_sizes_are_the_networks_own(architecture, size):
    assert of_library(f"torchvision/{architecture}").input_px == size


def test_what_is_wrong_is_said_before_any_job(tmp_path):
    torch, _ = import_torchvision()
    torch.save({"a": torch.zeros(1)}, tmp_path / "other.pt")
    (tmp_path / "no.npz").write_text("no arrays")
    models = [
        {"architecture": "torchvision/deeplab"},
        {"architecture": SEGMENTER, "weights": str(tmp_path / "other.pt")},
        {"architecture": SEGMENTER, "weights": "COCO_V9"},
        {"architecture": SEGMENTER, "inputs": str(tmp_path / "no.npz")},
        {"architecture": SEGMENTER, "weights": "DEFAULT"},
    ]
    given = [
        Model.model_validate({"name": "m", "sla": {"latency_ms": 9}, **each}) for each in models
    ]
    told = list(own_files.problems((model, ()) for model in given))
    assert [line.removeprefix("models: m: ").split(":")[0] for line in told] == [
        "architecture",
        "weights",
        "weights",
        "inputs",
    ]
    assert "'torchvision/deeplab' is not a detection or segmentation model" in told[0]
    assert "are not those of lraspp_mobilenet_v3_large" in told[1]
    assert "write 'random' or" in told[2]


def test_kinds_are_told_apart():
    assert isinstance(of_library("torchvision/retinanet_resnet50_fpn"), Detector)
    assert Classifier("googlenet").bare().state_dict().keys() != (
        Classifier("googlenet").bare(has_aux=True).state_dict().keys()
    )
