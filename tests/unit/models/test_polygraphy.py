"""What TensorRT would be given passes the checks of NVIDIA's polygraphy that need no GPU."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from perseus.models.answers import TOLERANCES
from perseus.models.onnx_export import check_onnx
from perseus.models.onnx_precision import convert
from perseus.models.reference import Reference


@pytest.fixture(scope="module")
def networks(exported, tmp_path_factory) -> Path:
    """A folder with a model in each precision that TensorRT takes from the network."""
    folder, (source, _) = tmp_path_factory.mktemp("networks"), exported
    full, reference = source / "model.onnx", source / "reference.npz"
    shutil.copy(full, folder / "fp32.onnx")
    shutil.copy(reference, folder)
    for precision in ("fp16", "int8"):
        convert(precision, full, reference, folder / f"{precision}.onnx")
    return folder


def polygraphy(*arguments: object) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "polygraphy"
    command = [str(program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_a_network_is_clean_and_answers_as_before_once_its_constants_are_folded(
    networks, tmp_path, precision
):
    network, folded = networks / f"{precision}.onnx", tmp_path / "folded.onnx"
    linted = polygraphy("check", "lint", network, "-o", tmp_path / "lint.json")
    assert linted.returncode == 0, linted.stdout + linted.stderr
    done = polygraphy("surgeon", "sanitize", network, "--fold-constants", "-o", folded)
    assert done.returncode == 0, done.stdout + done.stderr
    check_onnx(folded, Reference.read(networks / "reference.npz"), tolerance=TOLERANCES[precision])


def test_a_network_runs_at_the_batches_of_a_plan(networks):
    shapes = ["--input-shapes", "input:[8,3,64,64]"]
    done = polygraphy("run", networks / "int8.onnx", "--onnxrt", *shapes)
    assert done.returncode == 0 and "shape=(8, 1000)" in done.stdout, done.stdout + done.stderr


def test_the_checks_find_a_broken_network(networks, tmp_path):
    broken = onnx.load(networks / "fp16.onnx")
    broken.graph.node[5].input[0] = "nowhere"
    onnx.save_model(broken, tmp_path / "broken.onnx")
    assert polygraphy("check", "lint", tmp_path / "broken.onnx").returncode != 0
