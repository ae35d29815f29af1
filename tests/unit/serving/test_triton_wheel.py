"""Tests of the files that the server's folder contains for the Python that runs it."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace

import pytest

from perseus.serving import triton_wheel
from perseus.serving.failures import ServerError
from perseus.serving.triton_wheel import Installation, environment, fill_folder

WANTED = "libpython3-0123abcd.13.so.1.0"


@pytest.fixture
def installation(tmp_path):
    wheel = tmp_path / "wheel"
    wheel.mkdir()
    for name in ("libtriton_python.so", "triton_python_backend_utils.py", "stub", WANTED):
        (wheel / name).touch()
    return Installation(
        binary=wheel / "tritonserver", python_backend=wheel, stub=wheel / "stub", libraries=wheel
    )


@pytest.fixture
def python(tmp_path, monkeypatch):
    """Return a function that simulates another version of Python, with other built-in modules."""
    system = tmp_path / "lib"
    system.mkdir()
    (system / "libpython3.13.so.1.0").touch()

    def become(minor, *built_in, libraries=system):
        told = SimpleNamespace(
            version_info=SimpleNamespace(major=3, minor=minor),
            builtin_module_names=("sys", *built_in),
            executable=sys.executable,
        )
        monkeypatch.setattr(triton_wheel, "sys", told)
        monkeypatch.setattr(sysconfig, "get_config_var", {"LIBDIR": str(libraries)}.get)

    return become


def libraries(folder: Path) -> dict[str, str]:
    return {path.name: str(path.readlink()) for path in (folder / "libraries").iterdir()}


def test_a_python_with_modules_built_in_lends_its_own_library(tmp_path, installation, python):
    python(13, "_datetime", "math")
    fill_folder(tmp_path / "folder", installation, tmp_path / "lib")
    own = str(tmp_path / "lib" / "libpython3.13.so.1.0")
    assert libraries(tmp_path / "folder") == {WANTED: own}
    path = environment(installation, tmp_path / "folder")["LD_LIBRARY_PATH"].split(":")
    assert path[:3] == [
        str(tmp_path / "folder" / "libraries"),
        str(tmp_path / "wheel"),
        str(tmp_path / "lib"),
    ]


@pytest.mark.parametrize(("minor", "built_in"), [(13, ["math"]), (12, ["_datetime"])])
def test_others_have_what_the_stub_wants(tmp_path, installation, python, minor, built_in):
    """If `_datetime` is not built in or Python is older than 3.13, no library is linked."""
    python(minor, *built_in)
    fill_folder(tmp_path / "folder", installation, tmp_path / "lib")
    assert libraries(tmp_path / "folder") == {}


def test_a_system_without_the_library_says_which_package_has_it(tmp_path, installation, python):
    python(13, "_datetime", libraries=tmp_path)
    with pytest.raises(ServerError, match=r"missing.*apt-get install libpython3\.13"):
        fill_folder(tmp_path / "folder", installation, tmp_path / "lib")
