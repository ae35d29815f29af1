"""Tests of pictures: preprocessing by client and server, random pictures, and the served models."""

from __future__ import annotations

import ast
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from google.protobuf import text_format
from PIL import Image
from references import images_and_scores, write_reference
from tritonclient.grpc import model_config_pb2 as pb

from perseus.models import networks, preprocess
from perseus.models.ensemble import write_ensemble
from perseus.models.images import JPEG_QUALITY, PICTURE_PX, random_pictures
from perseus.models.labelled import Labelled
from perseus.models.networks import ExportError
from perseus.models.picture_export import (
    export_pictures,
    preprocessing_for,
    write_labelled,
)
from perseus.models.pictures import Pictures, as_batch
from perseus.models.preprocess import Preprocessing, TritonPythonModel
from perseus.models.repository import ModelFiles, write_repository
from perseus.models.tensors import ModelTensors
from perseus.study.image_files import MIN_IMAGES
from perseus.study.tasks.export import ExportTask
from perseus.study.tasks.labelled import LabelledTask
from perseus.study.tasks.repository import RepositoryTask, ServedEnsemble, ServedTenant
from perseus.study.triton_models import files_of

CHECK = ModelTensors.of_classifier((3, 224, 224), 1000).plain()
ENSEMBLE = ServedEnsemble(
    tenant="a",
    preprocess="a.preprocess",
    network="a.network",
    max_batch_size=8,
    processes=2,
)


@pytest.fixture(scope="module")
def like_resnet() -> Preprocessing:
    return preprocessing_for("resnet50", "DEFAULT", 224)


@pytest.fixture
def wanted(like_resnet, tmp_path) -> Path:
    """Write pictures.npz of a network with the same preprocessing, without responses."""
    path = tmp_path / "pictures.npz"
    np.savez(path, **Pictures([], like_resnet).arrays())
    return path


def photo(folder: Path, size: tuple[int, int], mode: str = "RGB", kind: str = "jpg") -> Path:
    """Write a photo of this width and height."""
    pixels = np.random.default_rng(sum(size)).integers(0, 256, (9, 12, 3), np.uint8)
    path = folder / f"{size[0]}-{size[1]}-{mode}.{kind}"
    Image.fromarray(pixels).resize(size).convert(mode).save(path)
    return path


@pytest.mark.parametrize(
    ("architecture", "weights", "size"),
    [
        ("resnet50", "DEFAULT", 224),
        ("resnet50", "IMAGENET1K_V1", 64),
        ("efficientnet_b0", "random", 224),  # bicubic interpolation
        ("vit_b_16", "IMAGENET1K_SWAG_E2E_V1", 384),  # resize_size = crop_size
    ],
)
@pytest.mark.parametrize("shape", [(512, 384), (333, 500), (97, 401), (224, 224)])
def test_a_picture_becomes_what_torchvision_makes_of_it(
    tmp_path, architecture, weights, size, shape
):
    for mode, kind in (("RGB", "jpg"), ("L", "png"), ("CMYK", "jpg")):
        path = photo(tmp_path, shape, mode, kind)
        with Image.open(path) as file:
            expected = networks.preset(architecture, weights, size)(file.convert("RGB")).numpy()
        padded = np.pad(np.fromfile(path, np.uint8), (0, 999))
        found = preprocessing_for(architecture, weights, size).tensor(padded)
        assert found.dtype == np.float32 and found.flags.c_contiguous
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


def test_a_picture_becomes_pixels_where_the_network_normalises(like_resnet, tmp_path):
    file = np.fromfile(photo(tmp_path, (512, 384)), np.uint8)
    pixels = replace(like_resnet, normalises=False).tensor(file)
    assert pixels.dtype == np.uint8 and pixels.flags.c_contiguous
    like = networks.preset("resnet50", "DEFAULT")
    found = networks.normalised(pixels[np.newaxis], like)[0]
    np.testing.assert_allclose(found, like_resnet.tensor(file), rtol=0, atol=2e-6)


@pytest.fixture
def labels(tmp_path) -> Callable[..., Labelled]:
    """Return a function that writes labelled.npz of two photos, and reads the file."""
    reference = write_reference(
        tmp_path / "reference.npz", np.zeros((1, 3, 64, 64)), np.zeros((1, 1000))
    )

    def written(classes, request="float32", names=()) -> Labelled:
        photos = [str(photo(tmp_path, size)) for size in ((512, 384), (97, 401))]
        task = LabelledTask(
            architecture="resnet50",
            weights="random",
            request=request,
            images=names or photos,
            classes=classes,
        )
        write_labelled(task, reference, tmp_path / "labelled.npz")
        return Labelled.read(tmp_path / "labelled.npz")

    return written


def test_labelled_images_are_sent_as_the_network_wants_them(labels, tmp_path):
    found = labels([7, 999])
    assert found.classes.tolist() == [7, 999]
    like = preprocessing_for("resnet50", "random", 64)
    files = [np.fromfile(name, np.uint8) for name in sorted(tmp_path.glob("*.jpg"))]
    tensors = found.tensors([1, 0])
    assert tensors.shape == (2, 3, 64, 64) and tensors.dtype == np.float32
    expected = {like.tensor(file).tobytes() for file in files}
    assert {each.tobytes() for each in tensors} == expected
    assert labels([7, 999], "uint8").tensors([0]).dtype == np.uint8


def test_labels_that_do_not_fit_are_refused(labels, tmp_path, monkeypatch):
    with pytest.raises(
        ExportError, match=r"class 1000, but resnet50 has only the classes 0 to 999"
    ):
        labels([7, 1000])
    (tmp_path / "cut.jpg").write_bytes(b"no picture")
    Image.new("L", (9, 9)).save(tmp_path / "large.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 40)
    for name in ("cut.jpg", "large.png"):
        with pytest.raises(ExportError, match=rf"{name} cannot be read as a PNG or JPEG image"):
            labels([7], names=[str(tmp_path / name)])


def test_it_runs_where_nothing_but_pillow_and_numpy_is():
    tree = ast.parse(Path(preprocess.__file__).read_text())
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import)
             for alias in node.names}  # fmt: skip
    named |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    first = {name.partition(".")[0] for name in named}
    assert first - set(sys.stdlib_module_names) == {"numpy", "PIL", "triton_python_backend_utils"}


@pytest.fixture
def triton(torch, monkeypatch):
    """Replace Triton's Python API by tensors and errors that only store their arguments."""
    utils = ModuleType("triton_python_backend_utils")
    utils.TritonError = str
    utils.Tensor = SimpleNamespace(
        from_dlpack=lambda name, capsule: SimpleNamespace(
            name=name, array=torch.from_dlpack(capsule)
        )
    )
    utils.InferenceResponse = lambda tensors=(), error=None: SimpleNamespace(
        tensors=tensors, error=error
    )
    utils.get_input_tensor_by_name = lambda request, name: torch.from_numpy(request[name])
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", utils)


def test_triton_gets_as_many_tensors_as_rows_and_an_error_for_what_is_no_picture(
    tmp_path, triton, wanted, like_resnet
):
    root = tmp_path / "repository"
    write_ensemble(root, ENSEMBLE, wanted, CHECK)
    written = text_format.Parse((root / "a.preprocess/config.pbtxt").read_text(), pb.ModelConfig())
    told = {name: {"string_value": of.string_value} for name, of in written.parameters.items()}
    model = TritonPythonModel()
    model.initialize({"model_config": json.dumps({"parameters": told})})
    files = [np.fromfile(photo(tmp_path, size), np.uint8) for size in ((512, 384), (99, 99))]
    assert len(files[0]) != len(files[1])
    good, bad = model.execute([{"input": as_batch(files)}, {"input": as_batch([files[0][:50]])}])
    (tensor,) = good.tensors
    expected = np.stack([like_resnet.tensor(file) for file in files])
    assert tensor.name == "output" and np.array_equal(tensor.array, expected)
    assert not bad.tensors and bad.error == "preprocess: Truncated File Read"


# Contents of a repository


def served(root: Path) -> dict[str, pb.ModelConfig]:
    return {
        path.parent.name: text_format.Parse(path.read_text(), pb.ModelConfig())
        for path in root.glob("*/config.pbtxt")
    }


def tree(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_an_ensemble_leads_pictures_through_its_steps(tmp_path, wanted):
    network = ServedTenant(
        name="a.network", model="resnet50", max_queue_delay_us=500, ensemble=ENSEMBLE
    )
    plain = ServedTenant(name="b", model="resnet50")
    (tmp_path / "model.onnx").write_bytes(b"onnx")
    (tmp_path / "check.json").write_text(json.dumps(CHECK))
    (tmp_path / "reference.npz").write_bytes(b"answers")
    files = tmp_path / "model.onnx", tmp_path / "check.json"
    model_files = [ModelFiles(*files, wanted), ModelFiles(*files, tmp_path / "reference.npz")]
    root = tmp_path / "repository"
    write_repository(root, RepositoryTask(tenants=(network, plain)), model_files, is_variant=False)
    of_both = [*files_of("a", "server", "model.onnx"), *files_of("b", None, "model.onnx")]
    assert tree(root) == sorted(of_both)
    assert (root / "a.reference.npz").read_bytes() == wanted.read_bytes()
    assert (root / "b.reference.npz").read_bytes() == b"answers"
    made = served(root)
    assert set(made) == {"a", "a.network", "a.preprocess", "b"}
    assert made.pop("b").backend == "onnxruntime"
    first, second = made["a"].ensemble_scheduling.step
    assert (first.model_name, second.model_name) == ("a.preprocess", "a.network")
    assert dict(first.output_map)["output"] == dict(second.input_map)["input"] == "images"
    # The output of each model is the input of the next model.
    assert made["a"].input[0] == made["a.preprocess"].input[0]
    assert made["a.preprocess"].output[0].dims == made["a.network"].input[0].dims
    assert made["a"].output[0] == made["a.network"].output[0]
    assert {config.max_batch_size for config in made.values()} == {8}
    # Only the network batches requests; the preprocessing does not wait.
    batching = {name for name, config in made.items() if config.HasField("dynamic_batching")}
    assert batching == {"a.network"}
    assert made["a.preprocess"].instance_group[0].count == 2
    program = (root / "a.preprocess/1/model.py").read_bytes()
    assert program == Path(preprocess.__file__).read_bytes()


# Random pictures


def test_random_pictures_are_seeded_differ_and_are_as_large_as_photos(tmp_path):
    files = []
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        (tmp_path / name).mkdir()
        files.append([Path(p).read_bytes() for p in random_pictures(tmp_path / name, 3, seed)])
    assert files[0] == files[1] and len({*files[0], *files[2]}) == 6
    with Image.open(tmp_path / "one" / "0.jpg") as picture:
        assert (picture.format, picture.size, picture.mode) == ("JPEG", PICTURE_PX, "RGB")
    bits = 8 * len(files[0][0]) / (PICTURE_PX[0] * PICTURE_PX[1])
    assert 1.5 < bits < 4, f"{bits:.1f} bits a pixel, of quality {JPEG_QUALITY}"


@pytest.mark.parametrize("from_files", [False, True])
def test_the_answers_are_torch_s_to_the_very_pictures(tmp_path, from_files):
    photos = [str(photo(tmp_path, (90 + 40 * n, 120))) for n in range(5)] if from_files else []
    task = ExportTask(architecture="mobilenet_v3_small", input_size=64, images=photos)
    export_pictures(task, tmp_path / "pictures.npz")
    pictures = Pictures.read(tmp_path / "pictures.npz")
    assert len(pictures.files) == (5 if from_files else MIN_IMAGES)
    if from_files:
        assert [file.tobytes() for file in pictures.files] == [Path(p).read_bytes() for p in photos]
    tensors, answers = images_and_scores(tmp_path / "pictures.npz")
    again = np.stack([pictures.preprocessing.tensor(file) for file in pictures.files])
    np.testing.assert_allclose(again, tensors, rtol=0, atol=2e-6)
    assert answers.shape == (len(tensors), 1000) and np.ptp(answers, axis=0).max() > 1e-3


def test_pictures_that_are_all_the_same_prove_nothing(tmp_path):
    first = photo(tmp_path, (90, 120))
    names = [str(shutil.copy(first, tmp_path / f"{n}.jpg")) for n in range(4)]
    task = ExportTask(architecture="squeezenet1_1", input_size=64, images=names)
    with pytest.raises(ExportError, match="same response to every image"):
        export_pictures(task, tmp_path / "pictures.npz")
    assert not (tmp_path / "pictures.npz").exists()


def test_pictures_of_one_batch_are_as_long_as_the_longest():
    batch = as_batch([np.array([1, 2, 3], np.uint8), np.array([4], np.uint8)])
    assert batch.tolist() == [[1, 2, 3], [4, 0, 0]] and batch.dtype == np.uint8
