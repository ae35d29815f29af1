"""Tests of the report on a machine before the installation, with help for missing programs."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from perseus.host import control_groups, cpu_quota, memory_limit

MODULES = (control_groups, cpu_quota, memory_limit)
SCRIPT = Path(__file__).parents[2] / "scripts" / "doctor.py"


@pytest.fixture(scope="module")
def doctor():
    spec = importlib.util.spec_from_file_location("doctor", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["doctor"] = module  # dataclasses need the module here
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", [SCRIPT, *(Path(module.__file__) for module in MODULES)])
def test_it_needs_no_package(path):
    tree = ast.parse(path.read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import)
                for alias in node.names}  # fmt: skip
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported -= {module.__name__ for module in MODULES}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names


def test_this_machine_is_described_in_a_line_for_each_thing():
    run = subprocess.run([sys.executable, "-I", SCRIPT], capture_output=True, text=True)
    lines = run.stdout.splitlines()
    assert not run.stderr and len(lines) == 11
    assert all(line.startswith(("ok ", "note ", "missing ")) for line in lines)
    assert run.returncode == any(line.startswith("missing") for line in lines)


def test_a_container_has_no_more_cores_than_its_quota(doctor, monkeypatch):
    quota = cpu_quota.CpuQuota(1.5, Path("/sys/fs/cgroup"))
    monkeypatch.setattr(cpu_quota, "read_quota", lambda: quota)
    (found,) = [each for each in doctor.look() if each.name == "cores"]
    assert found.missing and found.found == "1 for this process"


def test_a_container_has_no_more_memory_than_its_limit(doctor, monkeypatch):
    monkeypatch.setattr(memory_limit, "free_bytes", lambda: doctor.GIB)
    monkeypatch.setattr(doctor, "_read", lambda path: "MemFree: 1 kB\nMemAvailable: 9437184 kB")
    assert doctor._memory_gib() == 1
    monkeypatch.setattr(memory_limit, "free_bytes", lambda: 2**63)
    assert doctor._memory_gib() == 9
    monkeypatch.setattr(memory_limit, "free_bytes", lambda: None)
    assert doctor._memory_gib() == 9


@pytest.mark.parametrize(
    ("version", "has_uv", "missing", "message"),
    [
        ((3, 11), False, False, ""),
        ((3, 13), False, False, ""),
        (
            (3, 14),
            False,
            True,
            "install one of these versions, then type: make PYTHON=python3.13 all",
        ),
        ((3, 10), True, False, "make uses uv to install one of these versions"),
    ],
)
def test_python(doctor, version, has_uv, missing, message):
    finding = doctor.python(version, has_uv)
    assert (finding.missing, finding.advice) == (missing, message)


def test_uv_replaces_the_virtual_environments_and_an_unsuitable_python(doctor, monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(doctor.sys, "version_info", (3, 10, 0))
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    found = {each.name: each for each in doctor.look() if each.name in ("Python", "venv")}
    assert not any(each.missing for each in found.values())
    assert "libpython" not in {each.name for each in doctor.look()}
    assert doctor.virtual_environments(has_uv=False).missing


def test_the_library_of_python_is_looked_for_where_the_server_does(doctor, tmp_path):
    name = f"libpython{sys.version_info.major}.{sys.version_info.minor}.so.1.0"
    finding = doctor.libpython([tmp_path])
    assert finding.missing and f"apt-get install {name[:-7]} " in str(finding)
    (tmp_path / name).touch()
    assert not doctor.libpython([tmp_path]).missing


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda d: d.cores(1, None),
            "missing  cores       1 for this process: the server and the client",
        ),
        (lambda d: d.cores(8, "1"), "note     cores       8 for this process: results vary, becau"),
        (lambda d: d.cores(8, "0"), "ok       cores       8 for this process"),
        (lambda d: d.enough("memory", 1.5, 4, "add"), "missing  memory      1.5 GiB free, but the"),
        (lambda d: d.open_files(256), "note     open files  256 at most: ulimit -n 1024"),
        (lambda d: d.open_files(-1), "ok       open files  -1 at most"),
        (lambda d: d.governor("powersave"), "note     governor    powersave: results vary with th"),
        (lambda d: d.load(3.0), "note     load        3.0 processes ran on average in the last mi"),
        (lambda d: d.gpu("NVRM version: NVIDIA 580.1\nGCC"), "ok       GPU         NVIDIA 580.1"),
    ],
)  # fmt: skip
def test_what_is_short_comes_with_what_to_do(doctor, call, says):
    assert str(call(doctor)).startswith(says)


def test_a_power_saving_governor_comes_with_the_command_that_changes_it(doctor):
    assert "cpupower frequency-set -g performance" in doctor.governor("powersave").advice
