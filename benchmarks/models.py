"""Model repositories of the benchmarks: servers whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

BACKENDS = Path(__file__).parent / "backends"
IMAGE = (3, 224, 224)
CLASSES = 1000


@dataclass(frozen=True)
class Sleep:
    """A server that takes `service_ms` per request; each `stall_every`-th takes `stall_ms` more."""

    service_ms: float
    stall_every: int = 0
    stall_ms: float = 0.0


def write_null(repository: Path) -> str:
    """A model that answers images (1, 3, 224, 224) with zeros (1, 1000); its name."""
    return _write(repository, "null", IMAGE, CLASSES, {})


def write_sleep(repository: Path, sleep: Sleep) -> str:
    """A model that answers one number with one number after a known time; its name."""
    parameters = {
        "service_ms": sleep.service_ms,
        "stall_every": sleep.stall_every,
        "stall_ms": sleep.stall_ms,
    }
    return _write(repository, "sleep", (1,), 1, parameters)


def _write(
    repository: Path,
    name: str,
    inputs: tuple[int, ...],
    outputs: int,
    parameters: Mapping[str, float],
) -> str:
    config = pb.ModelConfig(
        name=name,
        backend=name,
        max_batch_size=1,
        input=[pb.ModelInput(name="input", data_type=pb.TYPE_FP32, dims=inputs)],
        output=[pb.ModelOutput(name="output", data_type=pb.TYPE_FP32, dims=[outputs])],
    )
    config.instance_group.add(count=1, kind=pb.ModelInstanceGroup.Kind.KIND_CPU)
    for key, value in parameters.items():
        config.parameters[key].string_value = f"{value:g}"
    (repository / name / "1").mkdir(parents=True, exist_ok=True)
    (repository / name / "config.pbtxt").write_text(text_format.MessageToString(config))
    return name
