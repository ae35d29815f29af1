"""Which runtime computes on which device in which arithmetic, and configurations that forget it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Json = Any
Items = Sequence[tuple[str, dict[str, Json]]]  # (place, item) of a list of the configuration

PRECISIONS = {
    ("cpu", "onnxruntime"): {"fp32"},
    ("cpu", "openvino"): {"fp32", "bf16", "int8"},
    ("cpu", "pytorch"): {"fp32"},
    ("gpu", "onnxruntime"): {"fp32", "fp16"},
    ("gpu", "pytorch"): {"fp32", "fp16"},
    ("gpu", "tensorrt"): {"fp32", "fp16", "int8"},
}
"""What is offered, by device and runtime."""

DEVICES = {device for device, _ in PRECISIONS}
RUNTIMES = {runtime for _, runtime in PRECISIONS}


def device_problems(servers: Items) -> Iterator[str]:
    """GPUs that are missing or not used, and runtimes that the device or the launcher has not."""
    for at, server in servers:
        device, runtime = str(server.get("device")), str(server.get("runtime"))
        if device == "gpu" and "gpus" not in server:
            yield f"{at}.gpus: is missing: device is gpu (the numbers of its GPUs, such as [0])"
        if device == "cpu" and "gpus" in server:
            yield f"{at}.gpus: is of device: gpu only, and device is 'cpu'"
        able = [run for on, run in PRECISIONS if on == device]
        if device in DEVICES and runtime in RUNTIMES and runtime not in able:
            yield (
                f"{at}.runtime: {runtime!r} does not run on device {device!r} (take"
                f" {' or '.join(able)})"
            )
        if runtime == "tensorrt" and server.get("launcher") == "embedded":
            yield (
                f"{at}.launcher: 'embedded' has no TensorRT (take docker, podman or apptainer, with"
                " an image of NVIDIA's)"
            )


def precision_problems(
    place: str, model: Mapping[str, Json], server: Mapping[str, Json]
) -> Iterator[str]:
    """A model at `place` in a precision that its server does not offer."""
    precision, device, runtime = (
        str(part) for part in (model.get("precision"), server.get("device"), server.get("runtime"))
    )
    offers = [pair for pair, known in PRECISIONS.items() if precision in known]
    able = [run for on, run in offers if on == device]
    if able and runtime not in able and (device, runtime) in PRECISIONS:
        yield (
            f"{place}.model: server {server['name']!r} with runtime {runtime!r} cannot run"
            f" {model['name']!r} in {precision} (it needs runtime: {' or '.join(able)})"
        )
    if offers and not able and device in DEVICES:
        others = sorted({f"device: {on} with runtime: {run}" for on, run in offers})
        yield (
            f"{place}.model: server {server['name']!r} with device {device!r} cannot run"
            f" {model['name']!r} in {precision} (it needs {' or '.join(others)})"
        )
