"""Tests that the model repository of a scenario contains exactly the settings of the tenants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from perseus.models import repository
from perseus.models.repository import RepositoryError
from perseus.models.tensors import ModelTensors
from perseus.study.tasks.repository import ServedTenant

TENSORS = ModelTensors.of_classifier((3, 224, 224), 1000)
CHECK = TENSORS.plain()
PLAIN = ServedTenant(name="resnet", model="resnet50")


def changed(tenant: ServedTenant, **changes: Any) -> ServedTenant:
    return ServedTenant.model_validate(tenant.model_dump() | changes)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "exported" / "model.onnx"
    path.parent.mkdir()
    path.write_bytes(b"onnx")
    return path


def write(root: Path, model: Path, *tenants: ServedTenant) -> None:
    for tenant in tenants:
        repository.write_tenant(root, tenant, model, CHECK)


def parsed(path: Path) -> pb.ModelConfig:
    return text_format.Parse(path.read_text(), pb.ModelConfig())


def tree(root: Path) -> list[str]:
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())


def test_the_configuration_can_be_read_back(tmp_path, model):
    tenant = changed(
        PLAIN, instances=2, max_queue_delay_us=500, preferred_batch_sizes=(4, 8), intra_op_threads=3
    )
    write(tmp_path / "repository", model, tenant)
    config = parsed(tmp_path / "repository/resnet/config.pbtxt")
    assert config == repository.model_config(tenant, TENSORS)
    assert (config.name, config.backend, config.max_batch_size) == ("resnet", "onnxruntime", 8)
    assert config.default_model_filename == "model.onnx"
    assert (config.input[0].name, list(config.input[0].dims)) == ("input", [3, 224, 224])
    assert (config.output[0].name, list(config.output[0].dims)) == ("output", [1000])
    (group,) = config.instance_group
    assert (group.count, group.kind) == (2, pb.ModelInstanceGroup.Kind.KIND_CPU)
    assert config.dynamic_batching.max_queue_delay_microseconds == 500
    assert list(config.dynamic_batching.preferred_batch_size) == [4, 8]


def test_dynamic_batching_is_there_only_if_asked_for():
    def config(delay_us: int | None) -> pb.ModelConfig:
        return repository.model_config(changed(PLAIN, max_queue_delay_us=delay_us), TENSORS)

    assert not config(None).HasField("dynamic_batching")
    # With a delay of 0, Triton still batches the requests that already wait.
    assert config(0).HasField("dynamic_batching")


def test_a_priority_competes_for_the_cores():
    config = repository.model_config(changed(PLAIN, priority=2, intra_op_threads=4), TENSORS)
    limiter = config.instance_group[0].rate_limiter
    assert limiter.priority == 2
    assert [(r.name, r.count, getattr(r, "global")) for r in limiter.resources] == [
        ("cores", 4, True)
    ]
    plain = repository.model_config(PLAIN, TENSORS)
    assert not plain.instance_group[0].HasField("rate_limiter")


def test_writing_again_changes_nothing_and_leaves_no_temporary_files(tmp_path, model):
    root = tmp_path / "repository"
    write(root, model, PLAIN)
    before = {name: (root / name).read_bytes() for name in tree(root)}
    write(root, model, PLAIN)
    assert {name: (root / name).read_bytes() for name in tree(root)} == before
    assert tree(root) == ["resnet/1/model.onnx", "resnet/config.pbtxt"]


def test_a_new_export_replaces_the_served_model_and_leaves_the_exported_one(tmp_path, model):
    root = tmp_path / "repository"
    write(root, model, PLAIN)
    newer = tmp_path / "newer.onnx"
    newer.write_bytes(b"newer")
    write(root, newer, PLAIN)
    assert (root / "resnet/1/model.onnx").read_bytes() == b"newer"
    assert model.read_bytes() == b"onnx"


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b", "é", "a\n"])
def test_names_that_cannot_be_folders_are_refused(tmp_path, model, name):
    with pytest.raises(RepositoryError, match="in its name, only letters"):
        write(tmp_path / "repository", model, changed(PLAIN, name=name))
    assert not (tmp_path / "repository").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"runtime": "tensorflow"}, "runtime 'tensorflow' is not one of onnxruntime, openvino"),
        ({"precision": "int3"}, "precision 'int3' is not one of"),
        ({"precision": "bf16"}, "does not compute in bf16"),
        ({"instances": 0}, "instances is 0"),
        ({"max_batch_size": 0}, "max_batch_size is 0"),
        ({"priority": 0}, "priority is 0"),
        ({"max_queue_delay_us": -1}, "must not be negative"),
        ({"preferred_batch_sizes": (4,)}, "set max_queue_delay_us"),
        ({"max_queue_delay_us": 0, "preferred_batch_sizes": (16,)}, "not between 1 and 8"),
    ],
)
def test_tenants_that_triton_would_refuse_are_refused_here(changes, message):
    with pytest.raises(RepositoryError, match=message):
        repository.model_config(changed(PLAIN, **changes), TENSORS)
