"""Measure the inference times of a model without a server: instead of Triton, a loop in a separate
process calls the Python backend.

`python -m perseus.measurement.in_process` loads the code of the backend, runs inferences, and
prints the inference times in ms.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
from google.protobuf import json_format, text_format
from tritonclient.grpc import model_config_pb2 as pb

from perseus.host.child_process import kill_group, start
from perseus.models.examples import examples
from perseus.models.tensors import TensorSpec
from perseus.peak.stats import Floats
from perseus.study.runtimes import RUNTIMES
from perseus.study.tasks.measure import MeasureTask

SCRIPTS: Final = Path(__file__).parents[2]
BACKENDS: Final = SCRIPTS / "backends"
STUB: Final = "triton_python_backend_utils"
LOADS_S: Final = 300.0
"""Longest time in seconds to load a model and compute its first inference."""

MIN_INFERENCES: Final = 3


class InProcessError(RuntimeError):
    """The attempt to run a model without a server failed. The message states the reason."""


def has_backend(task: MeasureTask) -> bool:
    """Return whether `in_process_ms` can measure the models of the cell.

    The models must run in a Python backend of Perseus, on a CPU of this host. No tenant may use an
    ensemble of several models (`steps`).
    """
    server = task.server
    is_ours = server.launcher == "embedded" and RUNTIMES[server.runtime].python_backend
    return is_ours and server.device == "cpu" and not any(tenant.steps for tenant in task.tenants)


def in_process_ms(
    repository: Path, task: MeasureTask, cores: Sequence[int], seconds: float, log_path: Path
) -> Floats:
    """Run one request of the first tenant repeatedly, for `seconds` seconds on the cores `cores`.

    Return the time of each run in ms; shape (n,), n >= 3. Raises InProcessError if the process
    fails or does not end in time.
    """
    (tenant, *_) = task.tenants
    asked = [repository / tenant.name, task.server.runtime, tenant.request_batch_size, seconds]
    command = [sys.executable, "-m", __spec__.name, *map(str, asked)]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
    process = start(command, cores, log_path, environment)
    try:
        process.wait(LOADS_S + 4 * seconds)
    except subprocess.TimeoutExpired:
        raise InProcessError(
            f"the run of {tenant.name} without a server did not end within"
            f" {LOADS_S + 4 * seconds:.0f} s"
        ) from None
    finally:
        kill_group(process)
    lines = log_path.read_text("utf-8", errors="replace").splitlines() or [
        "the process printed no message"
    ]
    if process.returncode != 0:
        raise InProcessError(f"the run of {tenant.name} without a server failed: {lines[-1]}")
    if (times := printed_ms(lines)) is None:
        raise InProcessError(
            f"the run of {tenant.name} without a server printed no times: {lines[-1]}"
        )
    return times


def printed_ms(lines: Sequence[str]) -> Floats | None:
    """Return the times that the process printed; None if it printed no times.

    The times need not be in the last line, because libraries may print messages when the process
    ends.
    """
    for line in reversed(lines):
        if line.startswith("["):
            with suppress(ValueError):
                return np.array(json.loads(line), float)
    return None


@dataclass(frozen=True)
class _Tensor:
    """An input or output tensor in the form in which Triton passes tensors to a backend."""

    name: str
    values: Any

    def __dlpack__(self, **keys: Any) -> Any:
        return self.values.__dlpack__(**keys)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()

    @classmethod
    def from_dlpack(cls, name: str, values: Any) -> _Tensor:
        return cls(name, values)


@dataclass(frozen=True)
class _Response:
    tensors: Sequence[_Tensor] = ()
    error: Any = None


class _Metrics:
    """A stand-in for Triton's class MetricFamily. The stand-in ignores all values."""

    GAUGE = "gauge"

    def __init__(self, **_keys: Any) -> None:
        pass

    def Metric(self, **_keys: Any) -> _Metrics:  # noqa: N802, its name in Triton
        return self

    def set(self, _value: float) -> None:
        pass


def _stub() -> ModuleType:
    """Return a stand-in for the module that Triton offers to Python backends.

    In the stand-in, a request is a dictionary of tensors.
    """
    stub = ModuleType(STUB)
    for name, value in {
        "Tensor": _Tensor,
        "InferenceResponse": _Response,
        "TritonError": str,
        "TritonModelException": RuntimeError,
        "MetricFamily": _Metrics,
        "get_input_tensor_by_name": lambda request, name: request[name],
    }.items():
        setattr(stub, name, value)
    return stub


def _backend(runtime: str) -> Any:
    sys.modules[STUB] = _stub()
    tensors = sys.modules["perseus_tensors"] = _loaded("perseus_tensors", "perseus_tensors.py")
    tensors.tensor = _Tensor  # type: ignore[attr-defined]
    return _loaded("model", f"{runtime}/model.py").TritonPythonModel()


def _loaded(name: str, file: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, BACKENDS / file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _spec(of: pb.ModelInput) -> TensorSpec:
    """Return the name and the type of an input, and its shape after Triton's `reshape`."""
    dims = of.reshape.shape if of.HasField("reshape") else of.dims
    return TensorSpec(of.name, pb.DataType.Name(of.data_type).removeprefix("TYPE_"), tuple(dims))


def run(folder: Path, runtime: str, batch: int, seconds: float) -> list[float]:
    """Run a request of `batch` random examples repeatedly for `seconds` seconds.

    Return the time of each run in ms, without the first run.
    """
    config = text_format.Parse((folder / "config.pbtxt").read_text("utf-8"), pb.ModelConfig())
    backend = _backend(runtime)
    backend.initialize(
        {
            "model_config": json.dumps(
                json_format.MessageToDict(config, preserving_proto_field_name=True)
            ),
            "model_name": folder.name,
            "model_repository": str(folder),
            "model_version": "1",
            "model_instance_kind": "CPU",
            "model_instance_device_id": "0",
        }
    )
    has_batches = config.max_batch_size > 0
    given = examples([_spec(each) for each in config.input], batch, seed=0)
    request = {
        name: _Tensor(name, np.asarray(values if has_batches else values[0]))
        for name, values in given.items()
    }
    times_ms: list[float] = []
    deadline = float("inf")
    while len(times_ms) <= MIN_INFERENCES or time.monotonic() < deadline:
        start_ns = time.monotonic_ns()
        (answer,) = backend.execute([request])
        times_ms.append((time.monotonic_ns() - start_ns) / 1e6)
        if answer.error is not None:
            sys.exit(str(answer.error))
        if len(times_ms) == 1:  # the first inference also plans and allocates memory
            deadline = time.monotonic() + seconds
    backend.finalize()
    return times_ms[1:]


if __name__ == "__main__":
    of, executes, images, lasts = sys.argv[1:]
    print(json.dumps(run(Path(of), executes, int(images), float(lasts))))
