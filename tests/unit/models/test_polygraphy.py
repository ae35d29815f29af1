"""Tests that the inputs of TensorRT pass those checks of NVIDIA's polygraphy that need no GPU."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from perseus.models.answers import TOLERANCES
from perseus.models.onnx_export import check_onnx
from perseus.models.onnx_precision import convert
from perseus.models.reference import Reference


@pytest.fixture(scope="module")
def networks(exported, tmp_path_factory) -> Path:
    """Return a folder with the network in each precision for TensorRT."""
    folder, (source, _) = tmp_path_factory.mktemp("networks"), exported
    full, reference = source / "model.onnx", source / "reference.npz"
    shutil.copy(full, folder / "fp32.onnx")
    shutil.copy(reference, folder)
    for precision in ("fp16", "int8"):
        convert(precision, full, reference, folder / f"{precision}.onnx")
    return folder


@pytest.fixture
def polygraphy(capsys) -> Callable[..., tuple[bool, str]]:
    """Return a function that runs polygraphy in this process. The function returns whether the run
    succeeded, and its output."""

    from polygraphy.tools import main  # a slow import

    def run(*arguments: object) -> tuple[bool, str]:
        status = main([str(each) for each in arguments])
        return status == 0, "".join(capsys.readouterr())

    return run


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_a_network_is_clean_and_answers_as_before_once_its_constants_are_folded(
    networks, polygraphy, tmp_path, precision
):
    network, folded = networks / f"{precision}.onnx", tmp_path / "folded.onnx"
    is_clean, output = polygraphy("check", "lint", network, "-o", tmp_path / "lint.json")
    assert is_clean, output
    is_folded, output = polygraphy("surgeon", "sanitize", network, "--fold-constants", "-o", folded)
    assert is_folded, output
    check_onnx(folded, Reference.read(networks / "reference.npz"), tolerance=TOLERANCES[precision])


def test_a_network_runs_at_the_batches_of_a_plan(networks, polygraphy):
    shapes = ["--input-shapes", "input:[8,3,64,64]"]
    has_run, output = polygraphy("run", networks / "int8.onnx", "--onnxrt", *shapes)
    assert has_run and "shape=(8, 1000)" in output, output


def test_the_checks_find_a_broken_network(networks, polygraphy, tmp_path):
    broken = onnx.load(networks / "fp16.onnx")
    broken.graph.node[5].input[0] = "nowhere"
    onnx.save_model(broken, tmp_path / "broken.onnx")
    is_clean, _ = polygraphy("check", "lint", tmp_path / "broken.onnx")
    assert not is_clean
