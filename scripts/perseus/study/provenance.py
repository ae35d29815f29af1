"""Find the code and the software versions that a job depends on, besides its task and files.

Some modules are found by name at run time: the modules of a kind of experiment, launcher, runtime
or protocol. This module lists them for the jobs that use them.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from functools import cache

from perseus.study.fingerprint import Sources
from perseus.study.launchers import LAUNCHERS
from perseus.study.runtimes import RUNTIMES
from perseus.study.tasks.ceiling import CeilingTask
from perseus.study.tasks.measure import (
    MeasuredClient,
    MeasuredServer,
    MeasuredTenant,
    MeasureTask,
)
from perseus.study.tasks.network import NetworkTask
from perseus.study.tasks.repository import RepositoryTask

EXPORT = ("torch", "torchvision", "onnx", "onnxscript", "onnxruntime")
CONVERT = ("onnx", "onnxruntime")
OWN_ONNX = ("onnx", "onnxruntime")
PICTURES = ("torch", "torchvision", "pillow")
"""Packages whose version may change an export, a conversion, an ONNX file of the user, or the
reference responses to images."""

_TENSORS = "backends/perseus_tensors.py"  # the Python backends import this package


def measure_code(sources: Sources, task: MeasureTask) -> str:
    """Return the fingerprint of the code that a measurement runs, without the modules of other
    experiments, launchers and protocols."""
    kind, server = task.run.kind, task.server
    return sources.fingerprint(
        ["measure.py", *_backend(server)],
        [
            f"perseus.study.experiments.{kind}",
            f"perseus.measurement.experiments.{kind}",
            f"perseus.serving.launchers.{server.launcher}",
            _transport(task.client),
        ],
    )


def ceiling_code(sources: Sources, task: CeilingTask) -> str:
    """Return the fingerprint of the code that measures a client ceiling, including the null model
    (a backend that does no work)."""
    paths = ["ceiling.py", "backends/null/model.py", _TENSORS]
    return sources.fingerprint(paths, [_transport(task.client)])


def repository_code(sources: Sources, task: RepositoryTask) -> str:
    """Return the fingerprint of the code that writes a repository. It includes the modules of the
    runtimes and, if clients send image files, the module of the preprocessing."""
    runtimes = {f"perseus.models.runtimes.{tenant.runtime}" for tenant in task.tenants}
    before = {"perseus.models.ensemble"} if any(t.ensemble for t in task.tenants) else set()
    return sources.fingerprint(["repository.py"], [*runtimes, *before])


def tables_code(sources: Sources, script: str, tables: Sequence[str]) -> str:
    """Return the fingerprint of a script that makes these tables."""
    modules = [f"perseus.results.tables.{name}" for name in tables]
    return sources.fingerprint([script], [*modules, *_experiments(sources)])


def check_code(sources: Sources) -> str:
    tables = sources.children("perseus.results.tables")
    return sources.fingerprint(["check_tables.py"], [*tables, *_experiments(sources)])


def figure_code(sources: Sources, figure: str) -> str:
    drawn = [f"perseus.report.figures.{figure}"]
    return sources.fingerprint(["figure.py"], [*drawn, *_experiments(sources)])


def report_code(sources: Sources) -> str:
    """Return the fingerprint of the code of the report. It includes the modules of all figures and
    tables, since these modules define how the page shows figures and tables."""
    shown = [
        *sources.children("perseus.report.figures"),
        *sources.children("perseus.results.tables"),
    ]
    parts = sources.files("perseus/report/templates")
    return sources.fingerprint(["report.py", *parts], [*shown, *_experiments(sources)])


def compare_code(sources: Sources) -> str:
    """Return the fingerprint of the code that compares two results and writes the page."""
    parts = sources.files("perseus/report/templates")
    return sources.fingerprint(["compare.py", *parts], _experiments(sources))


def export_versions(packages: Sequence[str], images: Sequence[str]) -> dict[str, str]:
    """Return the versions of the packages that export a model and read the images of a user."""
    return versions([*packages, *(["pillow"] if images else [])])


def network_versions(task: NetworkTask) -> dict[str, str]:
    timm = ["timm"] if task.architecture.startswith("timm/") else []
    return export_versions([*EXPORT, *timm], task.examples.images)


def measure_versions(task: MeasureTask) -> dict[str, str]:
    """Return the versions of the packages of the server and the client.

    The versions in a container follow from the name of its image, which is in the task.
    """
    ours = LAUNCHERS[task.server.launcher].runs_our_backends
    serving = ["nvidia-pytriton", *RUNTIMES[task.server.runtime].packages] if ours else []
    images = ["pillow"] if any(map(_reads_images, task.tenants)) else []
    return versions([*serving, *images, *_client(task.client)])


def _reads_images(tenant: MeasuredTenant) -> bool:
    served = tenant.served_model
    return tenant.preprocessing is not None or bool(served and served.examples.images)


def ceiling_versions(task: CeilingTask) -> dict[str, str]:
    return versions(["nvidia-pytriton", *_client(task.client)])


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Return the version of each package; "none" if the package is not installed."""
    return {package: _version(package) for package in sorted(packages)}


def _backend(server: MeasuredServer) -> list[str]:
    """Return the modules of the Python backend of Perseus, if the server uses this backend."""
    runtime, launcher = RUNTIMES[server.runtime], LAUNCHERS[server.launcher]
    native = launcher.container and runtime.native_backend
    if launcher.elsewhere or native or not runtime.python_backend:
        return []
    return [f"backends/{server.runtime}/model.py", _TENSORS]


def _experiments(sources: Sources) -> list[str]:
    """Return the modules that read the tasks in the records of all cells."""
    return sources.children("perseus.study.experiments")


def _transport(client: MeasuredClient) -> str:
    return f"perseus.traffic.{client.protocol}_transport"


def _client(client: MeasuredClient) -> list[str]:
    """Return the packages of the client.

    With every protocol, the client uses grpcio to control models and to read statistics.
    """
    return ["tritonclient", "numpy", "grpcio", "aiohttp" if client.protocol == "http" else "hpack"]


@cache
def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"
