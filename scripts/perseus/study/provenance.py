"""Find the code and the software versions on which a job depends. If the code or a version changes,
Snakemake repeats the job.

A job imports some modules (of experiments, launchers, runtimes and protocols) by name at run time,
so its import statements do not name these modules. This module names them for each job.
"""

from __future__ import annotations

from collections.abc import Sequence

from perseus.host.machine import package_version
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
"""Packages whose versions may change the result of a job. The jobs are, in the order of the lists:
the export of a network, the conversion to another precision, the check of a user's ONNX file, and
the computation of reference responses to images."""

_TENSORS = "backends/perseus_tensors.py"  # the Python backends import this file


def measure_code(sources: Sources, task: MeasureTask) -> str:
    """Return the fingerprint of the code that measures a cell. The fingerprint covers only the
    experiment, the launcher and the protocol of this cell, so an edit of another experiment,
    launcher or protocol does not repeat the cell."""
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
    (a model that does no work)."""
    paths = ["ceiling.py", "backends/null/model.py", _TENSORS]
    return sources.fingerprint(paths, [_transport(task.client)])


def repository_code(sources: Sources, task: RepositoryTask) -> str:
    """Return the fingerprint of the code that writes a Triton repository, including the modules of
    the tenants' runtimes. If the server preprocesses images, the fingerprint also covers the module
    of the preprocessing."""
    runtimes = {f"perseus.models.runtimes.{tenant.runtime}" for tenant in task.tenants}
    before = {"perseus.models.ensemble"} if any(t.ensemble for t in task.tenants) else set()
    return sources.fingerprint(["repository.py"], [*runtimes, *before])


def tables_code(sources: Sources, script: str, tables: Sequence[str]) -> str:
    """Return the fingerprint of the script `script`, including the modules of the tables that the
    script makes."""
    modules = [f"perseus.results.tables.{name}" for name in tables]
    return sources.fingerprint([script], [*modules, *_experiments(sources)])


def check_code(sources: Sources) -> str:
    tables = sources.children("perseus.results.tables")
    return sources.fingerprint(["check_tables.py"], [*tables, *_experiments(sources)])


def figure_code(sources: Sources, figure: str) -> str:
    drawn = [f"perseus.report.figures.{figure}"]
    return sources.fingerprint(["figure.py"], [*drawn, *_experiments(sources)])


def report_code(sources: Sources) -> str:
    """Return the fingerprint of the code that writes the report, including the modules of all
    figures and tables."""
    shown = [
        *sources.children("perseus.report.figures"),
        *sources.children("perseus.results.tables"),
    ]
    parts = sources.files("perseus/report/templates")
    return sources.fingerprint(["report.py", *parts], [*shown, *_experiments(sources)])


def compare_code(sources: Sources) -> str:
    """Return the fingerprint of the code that compares the results of two studies."""
    parts = sources.files("perseus/report/templates")
    return sources.fingerprint(["compare.py", *parts], _experiments(sources))


def export_versions(packages: Sequence[str], images: Sequence[str]) -> dict[str, str]:
    """Return the versions of `packages`, with which a job exports a model. If the model has
    `images`, also return the version of the package that reads images."""
    return versions([*packages, *(["pillow"] if images else [])])


def network_versions(task: NetworkTask) -> dict[str, str]:
    timm = ["timm"] if task.architecture.startswith("timm/") else []
    return export_versions([*EXPORT, *timm], task.examples.images)


def measure_versions(task: MeasureTask) -> dict[str, str]:
    """Return the versions of the packages that a cell uses.

    The result always contains the packages of the client. For an embedded server, the result also
    contains the packages of the server. For a server in a container, the image name in the task
    stands for the versions of its packages.
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
    return {package: package_version(package) or "none" for package in sorted(packages)}


def _backend(server: MeasuredServer) -> list[str]:
    """Return the source files of Perseus's Python backend for the server; empty if the server uses
    another backend."""
    runtime, launcher = RUNTIMES[server.runtime], LAUNCHERS[server.launcher]
    native = launcher.container and runtime.native_backend
    if launcher.elsewhere or native or not runtime.python_backend:
        return []
    return [f"backends/{server.runtime}/model.py", _TENSORS]


def _experiments(sources: Sources) -> list[str]:
    """Return the names of the modules of all experiments. A record contains the settings of its
    experiment, so a script that reads records may need every module."""
    return sources.children("perseus.study.experiments")


def _transport(client: MeasuredClient) -> str:
    return f"perseus.traffic.{client.protocol}_transport"


def _client(client: MeasuredClient) -> list[str]:
    """Return the names of the packages that the client uses. With every protocol, the client needs
    grpcio to load models and to read statistics."""
    return ["tritonclient", "numpy", "grpcio", "aiohttp" if client.protocol == "http" else "hpack"]
