"""Tests of a tag that named one container image at the measurement, and now names another."""

from __future__ import annotations

import json

import pytest
from fake_engine import image_id, install

from perseus.measurement.moved_images import measured_with_another
from perseus.study.server import Server

IMAGE = "triton:24.10"
SERVER = Server.model_construct(name="cpu1", launcher="docker", image=IMAGE)


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """Install a fake docker that has the image, and return its folder."""
    (tmp_path / "images").write_text(IMAGE)
    install(tmp_path, "docker")
    monkeypatch.setenv("FAKE_ENGINE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def records(folder, *images, name=IMAGE):
    paths = [folder / f"{i}.json" for i in range(len(images))]
    for path, image in zip(paths, images, strict=True):
        path.write_text(json.dumps({"cell": {"server": {"image": name}}, "image_id": image}))
    return [*map(str, paths), str(folder / "not measured yet.json")]


def test_cells_of_another_image_are_told(engine):
    same, other, untold, missing = records(engine, image_id(IMAGE), "sha256:other", None)
    assert measured_with_another(SERVER, [same, other, untold, missing]) == [other]


def test_a_new_name_of_an_image_moves_no_tag(engine):
    """Snakemake detects the new name itself, and measures nothing again if the name is restored."""
    paths = records(engine, "sha256:other", name="triton:24.09")
    assert measured_with_another(SERVER, paths) == []


def test_without_an_engine_or_its_image_nothing_is_known(engine, monkeypatch):
    paths = records(engine, "sha256:other")
    (engine / "images").write_text("")
    assert measured_with_another(SERVER, paths) == []
    monkeypatch.setenv("PATH", "/nowhere")
    assert measured_with_another(SERVER, paths) == []


def test_an_engine_is_asked_only_where_something_was_measured_with_an_image(engine):
    assert measured_with_another(SERVER, records(engine, None)) == []
    assert not (engine / "calls").exists()
