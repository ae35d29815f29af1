"""The model repository of a server whose truth is known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

SLEEP_BACKENDS = Path(__file__).parent / "backends"


@dataclass(frozen=True)
class Sleep:
    """A server that takes `service_ms` per request; each `stall_every`-th takes `stall_ms` more."""

    service_ms: float
    stall_every: int = 0
    stall_ms: float = 0.0


def write_sleep(repository: Path, sleep: Sleep) -> str:
    """A model that answers one number with one number after a known time; its name."""
    parameters = {
        "service_ms": sleep.service_ms,
        "stall_every": sleep.stall_every,
        "stall_ms": sleep.stall_ms,
    }
    config = pb.ModelConfig(
        name="sleep",
        backend="sleep",
        max_batch_size=1,
        input=[pb.ModelInput(name="input", data_type=pb.TYPE_FP32, dims=(1,))],
        output=[pb.ModelOutput(name="output", data_type=pb.TYPE_FP32, dims=[1])],
    )
    config.instance_group.add(count=1, kind=pb.ModelInstanceGroup.Kind.KIND_CPU)
    for key, value in parameters.items():
        config.parameters[key].string_value = f"{value:g}"
    (repository / "sleep" / "1").mkdir(parents=True, exist_ok=True)
    (repository / "sleep" / "config.pbtxt").write_text(text_format.MessageToString(config))
    return "sleep"
