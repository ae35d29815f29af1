"""Tests of the dependencies of each rule's jobs on the code."""

import fnmatch
import importlib.metadata
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from measure_tasks import tenant

from perseus.study import provenance
from perseus.study.experiments import KINDS
from perseus.study.fingerprint import LEFT_OUT, Sources
from perseus.study.launchers import LAUNCHERS
from perseus.study.presets import PRESETS
from perseus.study.runtimes import RUNTIMES
from perseus.study.tasks.measure import MeasureTask
from perseus.study.tasks.repository import RepositoryTask

SCRIPTS = Path(__file__).parents[3] / "scripts"


class Named(Sources):
    """Sources whose fingerprints are sets of file paths and module names."""

    def fingerprint(self, paths, modules=()):
        return {*paths, *self.modules(paths, modules)}


def task(launcher="embedded", runtime="onnxruntime", protocol="grpc", kind="peak"):
    """Return the task of one cell. The fingerprint does not depend on the container image."""
    runs = {
        "peak": {"kind": "peak", "line": "dedicated", "name": "peak"},
        "concurrency": {"kind": "concurrency", "concurrencies": (1,)},
    }
    return MeasureTask(
        study="s",
        cell="c",
        scenario="cpu1.s",
        repeat=1,
        seed=1,
        run=runs[kind],
        server={
            "name": "cpu1",
            "device": "cpu",
            "launcher": launcher,
            "image": None,
            "runtime": runtime,
            "cores": 1,
            "gpus": (),
            "remote": None,
        },
        tenants=(),
        preset="quick",
        search=PRESETS["quick"].settings,
        arrivals={"process": "poisson", "cv": 1.0},
        trace=None,
        client={"protocol": protocol, "shared_memory": False, "processes": None},
    )


def code(**options):
    return provenance.measure_code(Named(SCRIPTS), task(**options))


@pytest.mark.parametrize(
    ("launcher", "runtime", "ours"),
    [
        *(("embedded", runtime, True) for runtime in ("onnxruntime", "openvino", "pytorch")),
        ("docker", "onnxruntime", False),
        ("podman", "openvino", False),
        ("apptainer", "tensorrt", False),
        ("docker", "pytorch", True),
        ("remote", "onnxruntime", False),
        ("remote", "pytorch", False),
    ],
)
def test_our_backend_counts_where_it_serves(launcher, runtime, ours):
    backends = {path for path in code(launcher=launcher, runtime=runtime) if "backends" in path}
    imported = "backends/perseus_tensors.py"
    assert backends == ({f"backends/{runtime}/model.py", imported} if ours else set())


def test_a_measurement_depends_on_its_own_kind_of_experiment_only():
    for kind in ("peak", "concurrency"):
        others = {f"perseus.study.experiments.{other}" for other in KINDS if other != kind}
        assert f"perseus.study.experiments.{kind}" in code(kind=kind)
        assert not others & code(kind=kind)


def test_a_measurement_depends_on_its_own_protocol_only():
    transports = {f"perseus.traffic.{protocol}_transport" for protocol in ("grpc", "http")}
    for protocol in ("grpc", "http"):
        assert transports & code(protocol=protocol) == {f"perseus.traffic.{protocol}_transport"}


@pytest.mark.parametrize(
    ("package", "names"),
    [
        ("perseus.study.experiments", KINDS),
        ("perseus.measurement.experiments", KINDS),
        ("perseus.serving.launchers", LAUNCHERS),
        ("perseus.models.runtimes", RUNTIMES),
        ("perseus.traffic", ("grpc_transport", "http_transport")),
    ],
)
def test_what_is_found_by_name_is_there(package, names):
    found = Sources(SCRIPTS).children(package)
    assert {f"{package}.{name}" for name in names} <= set(found)


def test_what_is_left_out_is_there():
    """Each pattern in LEFT_OUT matches the name of at least one module, class or value."""
    names = set()
    for path in (SCRIPTS / "perseus").rglob("*.py"):
        module = ".".join(path.relative_to(SCRIPTS).with_suffix("").parts)
        module = module.removesuffix(".__init__")
        defined = re.findall(r"^(?:class )?(\w+)(?:\(.*\))?:? ?.*?[:=]", path.read_text(), re.M)
        names |= {module, *(f"{module}.{name}" for name in defined)}
    assert [pattern for pattern in LEFT_OUT if not fnmatch.filter(names, pattern)] == []


def test_a_measurement_knows_nothing_of_tables_prices_and_figures():
    modules = code()
    prices = ("price", "price_list", "pricing", "machine_price")
    for layer in (
        "perseus.results",
        "perseus.report",
        *(f"perseus.study.{each}" for each in prices),
    ):
        assert find_spec(layer) is not None
        assert not {name for name in modules if name == layer or name.startswith(f"{layer}.")}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_measurement_depends_on_the_repository_only_by_its_files(launcher):
    modules = code(launcher=launcher)
    assert "perseus.models.rate_limiter" in modules or launcher == "remote"
    assert "perseus.models.repository" not in modules


ENSEMBLE = {"tenant": "a", "preprocess": "a.preprocess", "network": "a.network"}
ENSEMBLE |= {"max_batch_size": 8, "processes": 1}


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("ensemble", [None, ENSEMBLE], ids=["tensors", "pictures"])
def test_a_repository_depends_on_its_own_runtime_and_on_pictures_only_where_it_gets_some(
    runtime, ensemble
):
    plain = {"name": "b", "model": "b", "runtime": runtime}
    other = {**plain, "name": "a.network", "ensemble": ensemble}
    modules = provenance.repository_code(
        Named(SCRIPTS), RepositoryTask.model_validate({"tenants": [plain, other]})
    )
    assert modules >= {"repository.py", "perseus.models.repository"}
    of_runtimes = {f"perseus.models.runtimes.{name}" for name in RUNTIMES}
    assert modules & of_runtimes == {f"perseus.models.runtimes.{runtime}"}
    before = {f"perseus.models.{name}" for name in ("ensemble", "pictures", "preprocess")}
    assert modules & before == (before if ensemble else set())


@pytest.mark.parametrize(
    ("options", "packages"),
    [
        ({}, {"nvidia-pytriton", "onnxruntime", "hpack"}),
        ({"runtime": "openvino", "protocol": "http"}, {"nvidia-pytriton", "openvino", "aiohttp"}),
        ({"launcher": "docker", "runtime": "pytorch"}, {"hpack"}),
        ({"launcher": "remote"}, {"hpack"}),
    ],
)
def test_versions_are_of_what_serves_here_and_of_what_asks(options, packages):
    found = provenance.measure_versions(task(**options))
    assert found.keys() == {"grpcio", "numpy", "tritonclient", *packages}
    assert list(found) == sorted(found)


def test_who_preprocesses_depends_on_what_decodes():
    for side, packages in ((None, set()), ("client", {"pillow"}), ("server", {"pillow"})):
        told = task().model_copy(update={"tenants": (tenant("a", preprocessing=side),)})
        assert packages == provenance.measure_versions(told).keys() & {"pillow"}


def test_a_version_is_plain_text_also_of_what_is_missing():
    found = provenance.versions(["numpy", "no-such-package"])
    assert found["no-such-package"] == "none"
    assert found["numpy"][0].isdigit()


def test_the_version_of_a_build_for_gpus_counts_in_place_of_the_plain_build(monkeypatch):
    def version(package):
        if package != "runtime-gpu":
            raise importlib.metadata.PackageNotFoundError
        return "1.2"

    monkeypatch.setattr(importlib.metadata, "version", version)
    found = provenance.versions(["runtime", "other-runtime"])
    assert found == {"runtime": "1.2", "other-runtime": "none"}
