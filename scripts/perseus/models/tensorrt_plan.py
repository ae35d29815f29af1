"""Build a TensorRT plan from an ONNX file with `trtexec`, a program of TensorRT.

A plan runs only on the kind of GPU and in the version of TensorRT with which it was built.
Therefore Perseus builds a plan on the machine of the server, with the version of TensorRT that the
server uses. The `trtexec` on the PATH may be a script that runs a container of NVIDIA.

TensorRT 11 and later take the numeric precision of a network from its ONNX file and have no option
--fp16. With the option --stronglyTyped, TensorRT 10 also takes the precision from the ONNX file.
Therefore, before Perseus builds a plan in fp16 or int8, `onnx_precision.convert` converts the ONNX
file to this precision. The inputs and outputs of the network stay fp32.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perseus.host import child_process, gpu
from perseus.host.cores import core_locks
from perseus.host.exclusive import FOLDER, exclusive
from perseus.host.files import whole
from perseus.host.logs import last_lines
from perseus.host.signals import LEAVES_S
from perseus.models.onnx_export import sha256
from perseus.models.tensors import ModelTensors
from perseus.study.tasks.tensorrt import TensorRtTask

OLDEST = (10, 0, 0)
ALWAYS_TYPED = (11, 0, 0)  # in TensorRT 11 and later, the ONNX file defines the precision
BUILD_S = 1800.0
_WORKSPACE_MIB = 4096


class TensorRtError(RuntimeError):
    """Error: Perseus cannot build a TensorRT plan. The message says what to do."""


class NoPlanError(TensorRtError):
    """Error: TensorRT tried to build a plan of a network and failed."""


@dataclass(frozen=True)
class Batches:
    """Batch sizes of a TensorRT plan: smallest, best and largest size.

    TensorRT optimises the plan for the size `best`.
    """

    least: int
    best: int
    most: int


def batches(task: TensorRtTask) -> Batches:
    """Return the batch sizes for the plan of a tenant.

    If `dynamic_batching` is true, TensorRT optimises the plan for the largest of the
    `preferred_batch_sizes`, or for `max_batch_size` if there are no preferred sizes. If
    `dynamic_batching` is false, TensorRT optimises the plan for `request_batch_size`.
    """
    joined = max(task.preferred_batch_sizes, default=task.max_batch_size)
    best = joined if task.dynamic_batching else task.request_batch_size
    return Batches(1, best, task.max_batch_size)


def build(
    task: TensorRtTask,
    onnx: Path,
    check: Mapping[str, Any],
    plan: Path,
    timing_cache: Path,
    log_path: Path,
) -> dict[str, Any]:
    """Build the TensorRT plan of a tenant. Write the file `plan`, and return a record.

    `check` is the export record, which describes the inputs of the network. In the file
    `timing_cache`, TensorRT stores the execution times of layers. All plans of this server use the
    same file, so that a second build with the same layers takes only seconds. The output of trtexec
    goes to the file `log_path`.

    Raises TensorRtError if trtexec is missing or too old, or if the GPUs of the server differ.
    Raises NoPlanError if trtexec fails, and GpuError if a GPU is missing.
    """
    # A build on the first GPU is enough, since all GPUs of the server must be of the same kind.
    environment = {**os.environ, **gpu.cuda_environment(task.gpus[:1])}
    gpus = gpu.describe(task.gpus)
    if len({each["name"] for each in gpus["gpus"]}) > 1:
        names = ", ".join(each["name"] for each in gpus["gpus"])
        raise TensorRtError(
            f"the GPUs of this server differ ({names}), but a plan runs on only one kind of GPU:"
            " configure one server for each kind of GPU"
        )
    program = shutil.which("trtexec")
    if program is None:
        raise TensorRtError(
            "there is no trtexec on the PATH: install the trtexec of the TensorRT version that"
            " serves the plan (docs/how-to/gpu.md)"
        )
    version = _version(program, environment, log_path)
    sizes = batches(task)
    timing_cache.parent.mkdir(parents=True, exist_ok=True)
    with whole(plan) as partial:
        command = [
            *arguments(program, onnx, partial, ModelTensors.of(check), sizes, timing_cache),
            *(["--stronglyTyped"] if version < ALWAYS_TYPED else []),
        ]
        status = _run(command, environment, log_path)
        if status != 0 or not partial.exists():
            raise NoPlanError(
                f"trtexec could not build a plan (exit code {status}); the end of {log_path}:\n"
                f"{last_lines(log_path)}"
            )
        return {
            "tensorrt": ".".join(map(str, version)),
            **gpus,
            "onnx_sha256": sha256(onnx),
            "plan_sha256": sha256(partial),
            "precision": task.precision,
            "batches": {"min": sizes.least, "opt": sizes.best, "max": sizes.most},
            "command": command,
        }


@contextmanager
def no_measurement_running(
    task: TensorRtTask, owner: str, say: Callable[[str], None], folder: Path = FOLDER
) -> Iterator[None]:
    """Reserve the GPUs and cores of this job while the context is open.

    Until the context ends, no measurement uses these GPUs and cores. If another job uses one of
    them, this job waits, and calls `say` with the name of the other job. `owner` is the name of
    this job in the messages of waiting jobs. Raises GpuError if a GPU is missing, and LockError if
    a lock file is unusable.
    """
    locks = core_locks(os.sched_getaffinity(0)) | gpu.locks(task.gpus)
    with exclusive(locks, owner, say, folder):
        yield


def arguments(
    program: str,
    onnx: Path,
    plan: Path,
    tensors: ModelTensors,
    sizes: Batches,
    timing_cache: Path,
) -> list[str]:
    """Return the command line of trtexec, without the option that only TensorRT 10 needs.

    If the model does not support batches, the command line has no shapes of inputs, because the
    ONNX file states these shapes.
    """
    return [
        program,
        f"--onnx={onnx}",
        f"--saveEngine={plan}",
        *(_shapes(tensors, sizes) if tensors.has_batches else []),
        "--noTF32",  # otherwise, TensorRT would compute in TF32 instead of fp32
        f"--memPoolSize=workspace:{_WORKSPACE_MIB}M",
        "--builderOptimizationLevel=3",
        f"--timingCacheFile={timing_cache}",
        "--skipInference",
    ]


def _shapes(tensors: ModelTensors, sizes: Batches) -> Iterator[str]:
    for which, batch in (("min", sizes.least), ("opt", sizes.best), ("max", sizes.most)):
        each = (f"{of.name}:{'x'.join(map(str, (batch, *of.dims)))}" for of in tensors.inputs)
        yield f"--{which}Shapes={','.join(each)}"


def _version(program: str, environment: Mapping[str, str], log_path: Path) -> tuple[int, int, int]:
    """Run trtexec, and return the version of TensorRT (major, minor, patch) that it prints."""
    _run([program, "--help"], environment, log_path)
    match = re.search(r"TensorRT v(\d+)", log_path.read_text(errors="replace"))
    if match is None:
        raise TensorRtError(
            f"{program} does not state its version; the end of {log_path}:\n{last_lines(log_path)}"
        )
    version = parse_version(int(match[1]))
    if version < OLDEST:
        raise TensorRtError(
            f"{program} belongs to TensorRT {'.'.join(map(str, version))}, but Perseus needs"
            f" TensorRT {OLDEST[0]} or later"
        )
    return version


def parse_version(number: int) -> tuple[int, int, int]:
    """Return the version (major, minor, patch) from TensorRT's version number: 100500 means 10.5.0.

    Version numbers before version 10 have a shorter format: 8601 means 8.6.1.
    """
    major, rest = divmod(number, 10_000 if number >= 100_000 else 1000)
    return major, *divmod(rest, 100)


def _run(command: Sequence[str], environment: Mapping[str, str], log_path: Path) -> int:
    """Run trtexec and return its exit code.

    The output of trtexec replaces the content of the log file. If the process of Perseus ends,
    trtexec also ends. If trtexec runs longer than BUILD_S seconds, or if this job is stopped, the
    function sends SIGTERM to trtexec. LEAVES_S seconds later, the function kills trtexec if it
    still runs. If `trtexec` is a script, its child processes also get SIGTERM, so that they can
    stop a container.
    """
    here = sorted(os.sched_getaffinity(0))
    process = child_process.start(command, here, log_path, environment)
    try:
        return process.wait(BUILD_S)
    except subprocess.TimeoutExpired:
        raise TensorRtError(f"trtexec did not finish within {BUILD_S:.0f} s") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(LEAVES_S)
        child_process.kill_group(process)
