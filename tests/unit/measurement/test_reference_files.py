"""Tests of a scenario's reference files, and of the error for an incomplete repository."""

from __future__ import annotations

import pytest
from measure_tasks import measure_task, tenant

from perseus.measurement.reference_files import reference_files
from perseus.serving.failures import ServerError
from perseus.study.tasks.measure import ServedModel
from perseus.study.triton_models import files_of

THERE = tenant("there", served_model=ServedModel(name="theirs", shape={}))
TASK = measure_task(tenant("a", preprocessing="server"), tenant("b"), THERE)
FILES = [*files_of("a", "server", "model.onnx"), *files_of("b", None, "model.onnx")]


@pytest.fixture
def repository(tmp_path):
    for file in FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    return tmp_path


def test_answers_are_those_of_the_tenants_that_are_brought(repository):
    assert reference_files(repository, TASK) == {
        name: repository / f"{name}.reference.npz" for name in ("a", "b")
    }


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_is_missing_is_named_with_what_to_do(repository, file):
    (repository / file).unlink()
    with pytest.raises(ServerError, match=f"{repository} lacks {file}. Remove the whole folder"):
        reference_files(repository, TASK)
