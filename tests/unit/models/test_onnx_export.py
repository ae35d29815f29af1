"""Tests that exported models compute the same as torch, and that Perseus detects a wrong model."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from references import images_and_scores
from weights_files import write_shapes

from perseus.models import answers, networks, onnx_export
from perseus.models.architectures import Classifier
from perseus.models.networks import ExportError
from perseus.models.onnx_precision import convert
from perseus.models.reference import Reference
from perseus.models.tensors import ModelTensors
from perseus.study.tasks.export import ExportTask


def reference(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    return images_and_scores(folder / "reference.npz")


def test_the_record_says_what_was_exported_and_proved(exported):
    folder, record = exported
    assert json.loads(json.dumps(record)) == record
    assert record["architecture"] == "mobilenet_v3_small"
    assert ModelTensors.of(record) == ModelTensors.of_classifier((3, 64, 64), 1000)
    assert record["batches"] == [1, 3]
    assert record["relative_error"] < record["tolerance"] / 10
    assert record["size_bytes"] == (folder / "model.onnx").stat().st_size
    assert set(record["versions"]) == {"torch", "torchvision", "onnx", "onnxruntime"}


def test_the_model_is_one_file_with_the_agreed_names_and_a_dynamic_batch(exported):
    folder, record = exported
    assert sorted(path.name for path in folder.iterdir()) == ["model.onnx", "reference.npz"]
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    (given,), (answer,) = model.graph.input, model.graph.output
    assert (given.name, answer.name) == ("input", "output")
    assert given.type.tensor_type.elem_type == TensorProto.FLOAT
    batch, *image = given.type.tensor_type.shape.dim
    assert batch.dim_param and [d.dim_value for d in image] == [3, 64, 64]
    assert record["ir_version"] <= 10, "onnxruntime of Triton 24.10 reads no later one"
    assert (
        str(Path(onnx.__file__).parents[1]).encode() not in (folder / "model.onnx").read_bytes()
    ), "paths of this host are in the file"


def test_the_reference_carries_signal(exported):
    images, output = reference(exported[0])
    assert images.shape == (4, 3, 64, 64) and images.dtype == np.float32
    assert output.shape == (4, 1000) and output.dtype == np.float32
    # Without adapted batch normalisation, the signal of this network is 1e-9. In fp16, numbers
    # below 6e-5 lose precision.
    assert answers.signal(output) > max(0.01 * np.abs(output).max(), 3e-4)


def test_a_deep_network_with_random_weights_does_not_amplify_rounding_errors():
    """If each channel of batch normalisation has its own mean and scale, the error is 1.8 in this
    network."""
    task = ExportTask(architecture="efficientnet_v2_s", input_size=64)
    network, images, output = onnx_export.answered(task)
    torch, _ = networks.import_torchvision()
    with torch.no_grad():
        exact = network.double()(torch.from_numpy(images).double()).numpy()
    assert (
        answers.relative_error(output, exact, answers.signal(exact))
        < answers.TOLERANCES["fp32"] / 10
    )


def rewritten(source: Path, target: Path, how: str) -> Path:
    """Write a copy of the model whose graph disturbs or replaces the output."""
    model = onnx.load(source)
    graph = model.graph
    for node in graph.node:
        node.output[:] = ["true" if name == "output" else name for name in node.output]
    if how == "constant":  # every image gets the mean response, which has the right shape and size
        _, output = reference(source.parent)
        graph.initializer.append(numpy_helper.from_array(output.mean(axis=0), "mean_answer"))
        graph.initializer.append(numpy_helper.from_array(np.float32(0), "zero"))
        graph.node.append(helper.make_node("Mul", ["true", "zero"], ["nothing"]))
        graph.node.append(helper.make_node("Add", ["nothing", "mean_answer"], ["output"]))
    else:
        factor = np.float32(1.01 if how == "scaled" else np.nan)
        graph.initializer.append(numpy_helper.from_array(factor, "factor"))
        graph.node.append(helper.make_node("Mul", ["true", "factor"], ["output"]))
    onnx.save(model, target)
    return target


@pytest.mark.parametrize("how", ["constant", "scaled", "nan"])
def test_a_wrong_model_fails_the_check(exported, tmp_path, how):
    folder, _ = exported
    wrong = rewritten(folder / "model.onnx", tmp_path / "wrong.onnx", how)
    with pytest.raises(ExportError, match="responds differently after the export"):
        onnx_export.check_onnx(wrong, Reference.read(folder / "reference.npz"))


def test_answers_in_another_order_are_beyond_even_the_tolerance_of_bf16(exported):
    _, output = reference(exported[0])
    scale = answers.signal(output)
    swapped = answers.relative_error(np.roll(output, 1, axis=0), output, scale)
    same = np.broadcast_to(output.mean(axis=0), output.shape)
    assert min(swapped, answers.relative_error(same, output, scale)) > answers.TOLERANCES["bf16"]
    assert answers.relative_error(output[:1], output, scale) == float("inf")


def test_without_signal_nothing_is_proved(exported):
    _, output = reference(exported[0])
    with pytest.raises(ExportError, match="same response to every image"):
        onnx_export.require_signal(np.ones_like(output), "a network")


def test_a_failed_check_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_export, "MIN_SIGNAL_SHARE", 1e9)
    with pytest.raises(ExportError, match="the same response"):
        onnx_export.export_model(
            ExportTask(architecture="squeezenet1_1", input_size=64),
            tmp_path / "m.onnx",
            tmp_path / "r.npz",
        )
    assert list(tmp_path.iterdir()) == []


def test_weights_from_a_file_are_the_weights_that_are_exported(tmp_path):
    torch, torchvision = networks.import_torchvision()
    network = torchvision.models.squeezenet1_1(weights=None).eval()
    weights = tmp_path / "squeezenet.pth"
    torch.save(network.state_dict(), weights)
    onnx_export.export_model(
        ExportTask(architecture="squeezenet1_1", weights=str(weights), input_size=64),
        tmp_path / "model.onnx",
        tmp_path / "reference.npz",
    )
    images, output = reference(tmp_path)
    with torch.no_grad():
        np.testing.assert_allclose(network(torch.from_numpy(images)), output, rtol=1e-4, atol=1e-6)


@pytest.fixture
def photos(tmp_path: Path) -> list[str]:
    """Return five different images: fine and coarse, wide and high, with and without colours."""
    rng, files = np.random.default_rng(5), []
    for n, (mode, kind) in enumerate(
        [("RGB", "png"), ("RGB", "jpg"), ("L", "png"), ("RGBA", "png"), ("CMYK", "jpg")]
    ):
        pixels = rng.integers(0, 256, (2 ** (n + 2), 9, 3), np.uint8)
        image = Image.fromarray(pixels).resize((90 + 30 * n, 150 - 10 * n))
        files.append(str(tmp_path / f"{n}.{kind}"))
        image.convert(mode).save(files[-1])
    return files


def test_images_of_files_are_asked_and_checked(photos, tmp_path):
    task = ExportTask(architecture="squeezenet1_1", input_size=64, images=photos)
    record = onnx_export.export_model(task, tmp_path / "m.onnx", tmp_path / "reference.npz")
    images, output = reference(tmp_path)
    assert record["images"] == photos
    assert record["batches"] == [1, 4]
    assert images.shape == (5, 3, 64, 64) and len(output) == 5
    _, torchvision = networks.import_torchvision()
    transforms = torchvision.models.SqueezeNet1_1_Weights.DEFAULT.transforms
    own = transforms(crop_size=64, resize_size=73)  # 64 * 256 / 224
    for path, image in zip(photos, images, strict=True):
        with Image.open(path) as file:
            np.testing.assert_array_equal(image, own(file.convert("RGB")).numpy())


@pytest.mark.parametrize(
    ("architecture", "weights", "own"),
    [
        ("resnet50", "IMAGENET1K_V1", {"resize": 256, "crop": 224}),
        ("resnet50", "DEFAULT", {"resize": 232, "crop": 224}),
        ("resnet50", "random", {"resize": 232, "crop": 224}),
        ("resnet50", "weights/mine.pt", {"resize": 232, "crop": 224}),
        ("inception_v3", "random", {"resize": 342, "crop": 299}),
        ("vit_b_16", "IMAGENET1K_SWAG_E2E_V1", {"resize": 384, "crop": 384}),
    ],
)
def test_images_are_preprocessed_as_the_weights_want(architecture, weights, own):
    preset = networks.preset(architecture, weights)
    assert {"resize": preset.resize_size[0], "crop": preset.crop_size[0]} == own
    assert networks.default_input_size(architecture, weights) == own["crop"]


def test_another_input_size_keeps_the_share_of_the_image_that_is_seen():
    own, half = networks.preset("resnet50", "DEFAULT"), networks.preset("resnet50", "DEFAULT", 112)
    assert (half.crop_size, half.resize_size) == ([112], [116])
    assert (half.mean, half.std, half.interpolation) == (own.mean, own.std, own.interpolation)
    assert networks.preset("resnet50", "DEFAULT", 224).resize_size == own.resize_size


def test_an_image_keeps_its_colours_and_its_place():
    """One half of the image is red, one half is blue.

    The expected values follow from the ImageNet statistics.
    """
    image = Image.new("RGB", (448, 224), (255, 0, 0))
    image.paste((0, 0, 255), (224, 0, 448, 224))
    seen = networks.preset("resnet50", "DEFAULT")(image).numpy()
    red, blue = (np.array(c) for c in ([1.0, 0.0, 0.0], [0.0, 0.0, 1.0]))
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    np.testing.assert_allclose(seen[:, 112, 0], (red - mean) / std, rtol=1e-5)
    np.testing.assert_allclose(seen[:, 112, 223], (blue - mean) / std, rtol=1e-5)


@pytest.mark.parametrize("harm", ["text", "truncated", "another format", "missing"])
def test_a_broken_image_is_named(harm, photos, tmp_path):
    broken = Path(photos[2])
    if harm == "text":
        broken.write_text("no image")
    elif harm == "truncated":
        broken.write_bytes(broken.read_bytes()[:-30])
    elif harm == "another format":
        Image.new("RGB", (90, 90)).save(broken, "GIF")
    else:
        broken.unlink()
    task = ExportTask(architecture="squeezenet1_1", input_size=64, images=photos)
    refused(task, tmp_path, r"2\.png cannot be read as a PNG or JPEG image")


def test_images_that_are_all_the_same_prove_nothing(photos, tmp_path):
    task = ExportTask(architecture="squeezenet1_1", input_size=64, images=photos[:1] * 4)
    refused(task, tmp_path, "same response to every image, .* other weights or images")


def test_a_state_dict_of_another_network_is_refused(tmp_path):
    torch, torchvision = networks.import_torchvision()
    state = torchvision.models.squeezenet1_1(weights=None).state_dict()
    state["extra.weight"] = state.pop("features.0.weight")
    torch.save(state, tmp_path / "other.pth")
    refused(
        ExportTask(
            architecture="squeezenet1_1", weights=str(tmp_path / "other.pth"), input_size=64
        ),
        tmp_path,
        r"1 missing keys \('features.0.weight'\); 1 unexpected keys \('extra.weight'\)",
    )
    state = torchvision.models.resnet18(weights=None).state_dict()
    state["bn1.num_batches_tracked"] = torch.zeros(1)  # a single number in the network
    torch.save(state, tmp_path / "counts.pth")
    refused(
        ExportTask(architecture="resnet18", weights=str(tmp_path / "counts.pth"), input_size=64),
        tmp_path,
        r"1 keys of another shape \('bn1.num_batches_tracked'\)",
    )
    (tmp_path / "text.pth").write_text("no weights")
    refused(
        ExportTask(architecture="squeezenet1_1", weights=str(tmp_path / "text.pth")),
        tmp_path,
        "not a state_dict",
    )


def test_a_fine_tuned_network_has_as_many_classes_as_its_file(tmp_path):
    torch, torchvision = networks.import_torchvision()
    for architecture, options in (("squeezenet1_1", {}), ("googlenet", {"init_weights": False})):
        network = torchvision.models.get_model(architecture, num_classes=10, **options)
        torch.save(network.state_dict(), tmp_path / "tuned.pth")
        found = networks.build(Classifier(architecture), str(tmp_path / "tuned.pth"), np.empty(0))
        assert found.eval()(torch.zeros(1, 3, 64, 64)).shape == (1, 10)
    state = torchvision.models.squeezenet1_1().state_dict()
    # the two parameters of the head have different sizes
    state["classifier.1.bias"] = torch.zeros(7)
    torch.save(state, tmp_path / "odd.pth")
    task = ExportTask(architecture="squeezenet1_1", weights=str(tmp_path / "odd.pth"))
    refused(task, tmp_path, r"1 keys of another shape \('classifier")


@pytest.mark.parametrize(("architecture", "size"), [("vit_b_32", 64), ("maxvit_t", 448)])
def test_networks_with_a_fixed_input_size_are_built_for_the_size_of_the_model(
    architecture, size, tmp_path
):
    """The best weights of vit_h_14 have 518 pixels, but its random network takes 224 by default."""
    torch, _ = networks.import_torchvision()
    of = Classifier(architecture, size)
    with torch.device("meta"):
        network = of.bare().eval()
        assert network(torch.zeros(2, 3, size, size)).shape == (2, 1000)
    torch.save(of.bare().state_dict(), tmp_path / "own.pth")
    networks.require_fit(of, tmp_path / "own.pth")
    if architecture == "vit_b_32":  # one weight for each patch of the image
        with pytest.raises(ExportError, match=r"not those of vit_b_32: .* of another shape"):
            networks.require_fit(Classifier(architecture), tmp_path / "own.pth")


def test_whether_a_file_fits_is_told_without_its_numbers(tmp_path):
    torch, torchvision = networks.import_torchvision()
    for architecture in ("squeezenet1_1", "inception_v3"):
        write_shapes(tmp_path / "fits.pth", architecture)
        networks.require_fit(Classifier(architecture), tmp_path / "fits.pth")
        with pytest.raises(ExportError, match=r"not those of resnet18: .* missing keys"):
            networks.require_fit(Classifier("resnet18"), tmp_path / "fits.pth")
    for architecture in ("alexnet", "regnet_x_400mf"):
        tuned = torchvision.models.get_model(architecture, num_classes=10)
        torch.save(tuned.state_dict(), tmp_path / "tuned.pth")
        networks.require_fit(Classifier(architecture), tmp_path / "tuned.pth")
    assert torch.zeros(1).device.type == "cpu"


def data_parallel(state):
    return {f"module.{name}": value for name, value in state.items()}


def compiled(state):
    """Return the weights as torch.compile names them for a network in DataParallel."""
    return {f"_orig_mod.module.{name}": value for name, value in state.items()}


def compiled_in_part(state):
    """Return the weights as torch.compile names them for one part of a network."""
    return {name.replace("layer1.", "layer1._orig_mod."): value for name, value in state.items()}


def sharded(state):
    """Return the weights as FSDP names them for one part with activation checkpointing."""
    inside = "layer1._fsdp_wrapped_module._checkpoint_wrapped_module."
    return {name.replace("layer1.", inside): value for name, value in state.items()}


def averaged(state):
    torch, _ = networks.import_torchvision()
    return {"n_averaged": torch.tensor(3), **data_parallel(state)}


def lightning(state):
    """Return a checkpoint of Lightning whose module also has a loss with weights."""
    torch, _ = networks.import_torchvision()
    weights = {f"net.{name}": value for name, value in state.items()}
    return {
        "epoch": 3,
        "pytorch-lightning_version": "2.5",
        "state_dict": {**weights, "criterion.weight": torch.ones(7)},
        "optimizer_states": [{"state": {}, "param_groups": []}],
    }


def of_the_reference_scripts(state):
    return {"model": data_parallel(state), "optimizer": {"state": {}, "param_groups": []}}


@pytest.mark.parametrize(
    "written",
    [
        data_parallel,
        compiled,
        compiled_in_part,
        sharded,
        averaged,
        lightning,
        of_the_reference_scripts,
    ],
)
def test_names_that_training_tools_wrap_are_unwrapped(tmp_path, written):
    torch, torchvision = networks.import_torchvision()
    network = torchvision.models.resnet18(num_classes=7)
    torch.save(written(network.state_dict()), tmp_path / "wrapped.pt")
    networks.require_fit(Classifier("resnet18"), tmp_path / "wrapped.pt")
    found = networks.build(
        Classifier("resnet18"), str(tmp_path / "wrapped.pt"), np.empty(0)
    ).state_dict()
    assert found.keys() == network.state_dict().keys()
    assert all(torch.equal(found[key], value) for key, value in network.state_dict().items())


def test_a_checkpoint_with_several_weights_is_refused_with_what_keeps_one(tmp_path):
    torch, torchvision = networks.import_torchvision()
    state = torchvision.models.resnet18(num_classes=7).state_dict()
    path = tmp_path / "both.pt"
    torch.save({"model": state, "model_ema": data_parallel(state), "epoch": 3}, path)
    with pytest.raises(ExportError) as refusal:
        networks.require_fit(Classifier("resnet18"), path)
    assert str(refusal.value) == (
        f"{path} contains the weights of the network several times: key 'model'; key"
        " 'model_ema'. Write a file with only one of them, for example:"
        " torch.save(torch.load('both.pt')['model'], 'one.pt')"
    )
    ema = {f"ema_model.{name}": value for name, value in state.items()}
    torch.save({**{f"online_model.{name}": value for name, value in state.items()}, **ema}, path)
    with pytest.raises(ExportError) as refusal:
        networks.require_fit(Classifier("resnet18"), path)
    assert str(refusal.value) == (
        f"{path} contains the weights of the network several times: prefix 'online_model.';"
        " prefix 'ema_model.'. Write a file with only one of them, for example:"
        " torch.save({k.removeprefix('online_model.'): v for k, v in"
        " torch.load('both.pt').items() if k.startswith('online_model.')}, 'one.pt')"
    )
    torch.save({**state, **data_parallel(state)}, path)
    with pytest.raises(ExportError, match=r"several times: prefix ''; prefix 'module"):
        networks.require_fit(Classifier("resnet18"), path)


def as_plain_dictionary(state):
    return {key: value.clone() for key, value in state.items()}


def as_before_counts(state):
    """Return the weights in the format of torch before 0.4.1, as in torchvision's first ResNets."""
    return {key: value for key, value in state.items() if "num_batches_tracked" not in key}


def with_versions(state):
    """Remove the numbers of batches, but keep the metadata of a torch that counts batches.

    With `strict=True`, torch does not load such weights.
    """
    for key in [key for key in state if "num_batches_tracked" in key]:
        del state[key]
    return state


@pytest.mark.parametrize("written", [as_plain_dictionary, as_before_counts, with_versions])
@pytest.mark.parametrize("architecture", ["resnet18", "mnasnet0_5"])
def test_a_state_dict_without_counts_of_batches_or_versions_is_loaded(
    tmp_path, architecture, written
):
    torch, torchvision = networks.import_torchvision()
    network = torchvision.models.get_model(architecture, num_classes=7)
    state = written(network.state_dict())
    torch.save(state, tmp_path / "old.pt")
    networks.require_fit(Classifier(architecture), tmp_path / "old.pt")
    found = networks.build(
        Classifier(architecture), str(tmp_path / "old.pt"), np.empty(0)
    ).state_dict()
    assert found.keys() == network.state_dict().keys()
    assert all(torch.equal(found[key], value) for key, value in state.items())


def test_names_in_a_file_cannot_write_to_the_terminal(tmp_path):
    torch, torchvision = networks.import_torchvision()
    state = torchvision.models.squeezenet1_1(weights=None).state_dict()
    torch.save({**state, "\x1b[31mred": torch.zeros(1)}, tmp_path / "red.pt")
    with pytest.raises(ExportError, match=r"1 unexpected keys \('\\x1b\[31mred'\)"):
        networks.require_fit(Classifier("squeezenet1_1"), tmp_path / "red.pt")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (lambda torchvision: torchvision.models.squeezenet1_1(), "refers to .*SqueezeNet, which"),
        (
            lambda torchvision: {"state_dict": {}, "epoch": 3},
            r"2 keys without tensors \('state",
        ),
    ],
)
def test_a_file_that_is_no_state_dict_is_refused_without_advice_to_trust_it(tmp_path, content, why):
    torch, torchvision = networks.import_torchvision()
    torch.save(content(torchvision), tmp_path / "weights.pth")
    task = ExportTask(architecture="squeezenet1_1", weights=str(tmp_path / "weights.pth"))
    with pytest.raises(ExportError, match=why) as refusal:
        onnx_export.export_model(task, tmp_path / "model.onnx", tmp_path / "reference.npz")
    assert "weights_only" not in str(refusal.value)


def torchscript(path):
    torch, _ = networks.import_torchvision()
    torch.jit.script(torch.nn.Linear(2, 2)).save(str(path))


def legacy_tar(path):
    """Write a file in the format of torch before 0.1.10, as far as Perseus reads it."""
    with tarfile.open(path, "w") as tar:
        for name in ("sys_info", "pickle", "storages", "tensors"):
            tar.addfile(tarfile.TarInfo(name))


@pytest.mark.parametrize(
    ("write", "why"), [(torchscript, "it is a TorchScript program"), (legacy_tar, "torch's .tar")]
)
def test_a_file_of_another_format_is_refused_without_that_advice_too(tmp_path, write, why):
    path = tmp_path / "weights.pt"
    write(path)
    with pytest.raises(ExportError, match=why) as refusal:
        networks.require_fit(Classifier("squeezenet1_1"), path)
    assert "weights_only" not in str(refusal.value) and "model.state_dict()" in str(refusal.value)


def test_an_export_without_enough_memory_says_nothing_about_the_network(tmp_path, monkeypatch):
    """A later run of the same job may succeed."""
    torch, _ = networks.import_torchvision()

    def fails(*_, **__):
        raise MemoryError

    monkeypatch.setattr(torch.onnx, "export", fails)
    with pytest.raises(MemoryError):
        onnx_export.export_model(
            ExportTask(architecture="squeezenet1_1", input_size=64),
            tmp_path / "model.onnx",
            tmp_path / "reference.npz",
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (ExportTask(architecture="resnet51"), "did you mean 'resnet50'"),
        (
            ExportTask(architecture="resnet18", weights="IMAGENET1K_V9"),
            "did you mean 'IMAGENET1K_V1'",
        ),
        (
            ExportTask(architecture="resnet18", weights="weights/none.pth"),
            "weights/none.pth does not exist",
        ),
        (ExportTask(architecture="squeezenet1_1", input_size=8), "does not accept images of 8 x 8"),
        (ExportTask(architecture="vit_b_32", input_size=70), "70 x 70 pixels: Input shape indivi"),
        (ExportTask(architecture="fasterrcnn_resnet50_fpn"), "unknown architecture: 'fasterrcnn"),
    ],
)
def test_mistakes_are_explained(task, message, tmp_path):
    refused(task, tmp_path, message)


def refused(task: ExportTask, folder: Path, message: str) -> None:
    with pytest.raises(ExportError, match=message):
        onnx_export.export_model(task, folder / "model.onnx", folder / "reference.npz")
    assert not (folder / "model.onnx").exists()


def test_a_request_in_uint8_has_pixels_which_the_network_normalises(tmp_path):
    task = ExportTask(architecture="squeezenet1_1", input_size=64, request="uint8")
    record = onnx_export.export_model(task, tmp_path / "model.onnx", tmp_path / "reference.npz")
    assert ModelTensors.of(record) == ModelTensors.of_classifier((3, 64, 64), 1000, "UINT8")
    reference = Reference.read(tmp_path / "reference.npz")
    assert reference.inputs["input"].dtype == np.uint8
    in_float32 = task.model_copy(update={"request": "float32"})
    network, _, _ = onnx_export.answered(in_float32)
    like = networks.preset("squeezenet1_1", "random", 64)
    torch, _ = networks.import_torchvision()
    with torch.no_grad():
        tensors = networks.normalised(reference.inputs["input"], like)
        expected = network(torch.from_numpy(tensors)).numpy()
    np.testing.assert_array_equal(np.stack(reference.all_answers("output")), expected)
    for precision in ("fp16", "int8"):
        made = tmp_path / f"{precision}.onnx"
        convert(precision, tmp_path / "model.onnx", tmp_path / "reference.npz", made)
        (given,) = onnx.load(made).graph.input
        assert given.type.tensor_type.elem_type == onnx.TensorProto.UINT8


def test_pixels_of_a_picture_are_those_that_torchvision_normalises(tmp_path):
    paths = []
    for number in range(4):
        colours = np.random.default_rng(number).integers(0, 256, (90, 120, 3), np.uint8)
        paths.append(str(tmp_path / f"{number}.png"))
        Image.fromarray(colours).save(paths[-1])
    task = ExportTask(architecture="squeezenet1_1", input_size=64, images=tuple(paths))
    _, in_float32, expected = onnx_export.answered(task)
    _, pixels, answers = onnx_export.answered(task.model_copy(update={"request": "uint8"}))
    like = networks.preset("squeezenet1_1", "random", 64)
    np.testing.assert_allclose(networks.normalised(pixels, like), in_float32, atol=1e-6)
    np.testing.assert_allclose(answers, expected, atol=1e-4)


def test_input_sizes_come_from_torchvision_without_a_download():
    assert networks.default_input_size("resnet50") == 224
    assert networks.default_input_size("inception_v3") == 299
