"""Model repositories of models with known service times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

KNOWN_BACKENDS = Path(__file__).parent / "backends"


@dataclass(frozen=True)
class Sleep:
    """A model that needs `service_ms` per request, and `stall_ms` more for every `stall_every`-th
    request."""

    service_ms: float
    stall_every: int = 0
    stall_ms: float = 0.0


@dataclass(frozen=True)
class Spin:
    """A model that computes a number of `rounds` per request. A round takes `slower` times as long
    while another model computes.

    `busy` is a file with one byte for each of two models. The byte at the position `index` is 1
    while this model computes.
    """

    rounds: int
    slower: float
    busy: str
    index: int


def write_sleep(repository: Path, sleep: Sleep) -> str:
    """Write a model that responds to one number with one number after a known time. Return the name
    of the model."""
    return _write(repository, "sleep", "sleep", asdict(sleep))


def write_spin(repository: Path, name: str, spin: Spin) -> str:
    """Write a model that responds to one number with one number after a known number of rounds of
    computation. Return the name of the model."""
    return _write(repository, name, "spin", asdict(spin))


def _write(repository: Path, name: str, backend: str, parameters: Mapping[str, object]) -> str:
    config = pb.ModelConfig(
        name=name,
        backend=backend,
        max_batch_size=1,
        input=[pb.ModelInput(name="input", data_type=pb.TYPE_FP32, dims=(1,))],
        output=[pb.ModelOutput(name="output", data_type=pb.TYPE_FP32, dims=[1])],
    )
    config.instance_group.add(count=1, kind=pb.ModelInstanceGroup.Kind.KIND_CPU)
    for key, value in parameters.items():
        config.parameters[key].string_value = str(value)
    (repository / name / "1").mkdir(parents=True, exist_ok=True)
    (repository / name / "config.pbtxt").write_text(text_format.MessageToString(config))
    return name
