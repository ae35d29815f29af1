"""Check the section `servers`: the device, launcher, image, runtime and prices of each server."""

from __future__ import annotations

from pathlib import Path

from perseus.study.checks.files import brace_problems, found
from perseus.study.checks.remotes import remote_problems
from perseus.study.definition import Definition
from perseus.study.launchers import LAUNCHERS
from perseus.study.machine_price import UnpricedError
from perseus.study.presentation import Costs
from perseus.study.price_list import PriceList
from perseus.study.pricing import price_of
from perseus.study.problems import Place, Problems, duplicates
from perseus.study.runtimes import PLAN, RUNTIMES
from perseus.study.server import Server


def problems(study: Definition, folder: Path, prices: PriceList | None) -> Problems:
    """Yield the problems of the servers.

    If the price list cannot be read, `prices` is None, and the function does not check prices.
    """
    yield from duplicates("servers", [server.name for server in study.servers])
    served = {model.name for model in study.models if model.is_served}
    deploying = {
        name
        for item in study.scenarios
        if any(tenant.model not in served for tenant in item.tenants)
        for name in item.servers
    }
    for i, server in enumerate(study.servers):
        at: Place = ("servers", i)
        if prices is not None:
            yield from _price_problems(at, server, prices, study.costs)
        yield from _image_problems((*at, "image"), server, folder)
        yield from device_problems(at, server, deploys=server.name in deploying)
        yield from remote_problems(at, server, folder)


def _price_problems(at: Place, server: Server, prices: PriceList, costs: Costs) -> Problems:
    if server.price is None and server.other_prices:
        yield (*at, "price"), "is missing, but `other_prices:` has prices (move one to `price:`)"
    rows = {(*at, "other_prices", i): row for i, row in enumerate(server.other_prices)}
    if server.price is not None:
        rows = {(*at, "price"): server.price, **rows}
    for place, wanted in rows.items():
        try:
            price_of(server, wanted, prices, costs)
        except UnpricedError as error:
            yield (*place, error.key), str(error)


def _image_problems(at: Place, server: Server, folder: Path) -> Problems:
    launcher, image = server.launcher, server.image
    containers = [name for name, each in LAUNCHERS.items() if each.container]
    if LAUNCHERS[launcher].container and image is None:
        yield (
            at,
            f"is missing: launcher {launcher!r} starts a container of this image (such as"
            " nvcr.io/nvidia/tritonserver:24.10-py3)",
        )
    if image is None:
        return
    if not LAUNCHERS[launcher].container:
        known = ", ".join(sorted(containers))
        yield at, f"applies only to the launchers {known}, but `launcher` is {launcher!r}"
    scheme, _, rest = image.rpartition("://")
    schemes = LAUNCHERS[launcher].image_schemes
    if LAUNCHERS[launcher].container and scheme not in ("", *schemes):
        if schemes:
            yield (
                at,
                f"images of {launcher} must be a path or begin with"
                f" {', '.join(f'{each}://' for each in schemes)}",
            )
        else:
            yield at, f"must have no '://' for launcher {launcher} (write {rest!r})"
    if server.image_file is not None:
        yield from brace_problems(at, image)
        if scheme == "" and not found((folder / image).exists):
            yield (
                at,
                f"there is no file {image!r} (make the file with 'apptainer pull <file>"
                " docker://nvcr.io/nvidia/tritonserver:24.10-py3', or write this URI)",
            )


def device_problems(at: Place, server: Server, *, deploys: bool = True) -> Problems:
    """Yield the problems of the GPUs and the runtime of a server.

    A GPU server needs the key `gpus`, and a CPU server must not have this key. Both the device and
    the launcher must support the runtime. `deploys` is false if the server already has all models
    that the study uses on this server.
    """
    if server.device == "gpu" and server.gpus is None:
        yield (
            (*at, "gpus"),
            "is missing: `device` is gpu (write the numbers of the GPUs, such as [0])",
        )
    if server.device == "cpu" and server.gpus is not None:
        yield (*at, "gpus"), "applies only to `device: gpu`, but `device` is 'cpu'"
    launcher = LAUNCHERS[server.launcher]
    able = [name for name, each in RUNTIMES.items() if server.device in each.precisions]
    if server.runtime not in able:
        yield (
            (*at, "runtime"),
            f"{server.runtime!r} does not run on device {server.device!r} (use"
            f" {' or '.join(able)})",
        )
    elif deploys and launcher.elsewhere and RUNTIMES[server.runtime].model_file == PLAN:
        yield (
            (*at, "runtime"),
            "a TensorRT plan must be built on the server's machine (use docker, podman or apptainer"
            " there, or onnxruntime)",
        )
    if launcher.runs_our_backends and not RUNTIMES[server.runtime].python_backend:
        yield (
            (*at, "launcher"),
            f"{server.launcher!r} has no {RUNTIMES[server.runtime].title} (use docker, podman or"
            " apptainer with an image of NVIDIA)",
        )
