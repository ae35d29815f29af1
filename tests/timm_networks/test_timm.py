"""Tests of networks of timm, if timm is installed: Perseus exports a network so that it computes
the same outputs as in timm, or refuses the network."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from perseus.models import own_files
from perseus.models.architectures import of_library
from perseus.models.network_export import export_network
from perseus.models.networks import ExportError, WeightsError, build, import_torchvision
from perseus.models.onnx_network import OnnxNetwork
from perseus.models.reference import Reference
from perseus.models.tensors import ModelTensors, TensorSpec
from perseus.study.model import Model
from perseus.study.tasks.network import NetworkTask
from perseus.study.tasks.own_examples import OwnExamples

torch, _ = import_torchvision()  # before timm, because timm imports torchvision itself
timm = pytest.importorskip("timm")


def exported(folder, **task):
    return export_network(NetworkTask(**task), folder / "model.onnx", folder / "reference.npz")


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("resnet18", 64),
        ("convnext_atto", 64),
        ("mobilenetv3_small_050", 64),
        ("efficientvit_b0", 64),
        ("vit_tiny_patch16_224", 64),  # accepts only one image size
        ("levit_128s", None),  # accepts only its default image size
        ("regnetz_005", None),  # random weights give small outputs, so rounding matters
    ],
)
def test_a_network_is_served_in_batches_as_torch_computes_it(tmp_path, name, size):
    record = exported(tmp_path, architecture=f"timm/{name}", input_size=size)
    pixels = size or timm.get_pretrained_cfg(name).input_size[-1]
    assert ModelTensors.of(record) == ModelTensors(
        (TensorSpec("input", "FP32", (3, pixels, pixels)),),
        (TensorSpec("output", "FP32", (1000,)),),
    )
    assert record["notes"] == [] and record["relative_error_to_torch"] < 1e-3
    assert record["versions"]["timm"] == timm.__version__
    reference = Reference.read(tmp_path / "reference.npz")
    network = OnnxNetwork(str(tmp_path / "model.onnx"), name)
    scales = reference.scales(1e-3)
    assert reference.error([2, 0, 1], network.answer(reference.given([2, 0, 1])), scales) < 1e-3


def test_weights_of_a_file_may_tell_apart_other_classes(tmp_path):
    tuned = timm.create_model("resnet18", num_classes=7, pretrained=False).eval()
    torch.save(tuned.state_dict(), tmp_path / "tuned.pt")
    weights = str(tmp_path / "tuned.pt")
    record = exported(tmp_path, architecture="timm/resnet18", input_size=64, weights=weights)
    assert ModelTensors.of(record).outputs == (TensorSpec("output", "FP32", (7,)),)
    reference = Reference.read(tmp_path / "reference.npz")
    with torch.no_grad():
        scores = tuned(torch.from_numpy(reference.inputs["input"])).numpy()
    np.testing.assert_allclose(reference.all_answers("output"), scores, rtol=1e-3, atol=1e-4)


def test_images_are_normalised_as_timm_states(tmp_path):
    images = []
    for number in range(4):
        images.append(str(tmp_path / f"{number}.png"))
        Image.new("RGB", (90, 70), (255, 60 * number, 0)).save(images[-1])
    examples = OwnExamples(images=tuple(images))
    exported(tmp_path, architecture="timm/mixer_s32_224", examples=examples)
    seen = Reference.read(tmp_path / "reference.npz").inputs["input"]
    stated = timm.get_pretrained_cfg("mixer_s32_224")
    wanted = (np.array([1, 120 / 255, 0]) - stated.mean) / stated.std
    np.testing.assert_allclose(seen[2, :, 5, 5], wanted, rtol=1e-5, atol=1e-6)


def test_weights_have_the_preprocessing_and_the_size_of_their_name():
    of = of_library("timm/convnext_tiny.in12k_ft_in1k_384")
    assert of.input_px == 384 and of.known_weights == ["DEFAULT"]
    assert of_library("timm/convnext_tiny.in12k").classes == 11821


def test_weights_that_cannot_be_downloaded_are_named(monkeypatch):
    def unreachable(*_, **__):
        raise OSError("no such host")

    monkeypatch.setattr(timm, "create_model", unreachable)
    with pytest.raises(WeightsError) as refused:
        build(of_library("timm/resnet18.a1_in1k"), "DEFAULT", np.empty(0))
    assert "cannot load the weights of timm/resnet18.a1_in1k: no such host" in str(refused.value)
    assert "huggingface.co" in str(refused.value)


@pytest.mark.parametrize("weights", ["random", "DEFAULT"])
def test_an_input_size_that_does_not_fit_is_refused_for_that(weights):
    with pytest.raises(ExportError, match=r"timm/xcit\S+ does not accept images of 200 x 200 pix"):
        build(of_library("timm/xcit_nano_12_p16_224", 200), weights, np.empty(0))


def test_what_is_wrong_is_said_before_any_job():
    models = [
        {"architecture": "timm/resnet81"},
        {"architecture": "timm/resnet18.a1_in2k"},
        {"architecture": "timm/resnet18", "weights": "IMAGENET1K_V1"},
        {"architecture": "timm/resnet18", "weights": "DEFAULT"},
    ]
    given = [
        Model.model_validate({"name": "m", "sla": {"latency_ms": 9}, **each}) for each in models
    ]
    told = list(own_files.problems((model, ()) for model in given))
    stated = f"models: m: architecture: timm {timm.__version__} has no"
    assert told[0].startswith(f"{stated} model 'resnet81' (did you mean 'resnet18'")
    assert told[1].startswith(f"{stated} weights 'a1_in2k' of resnet18 (did you mean 'a1_in1k'")
    assert told[2] == "models: m: weights: for timm/resnet18, write 'random' or 'DEFAULT'"
    assert len(told) == 3
