"""The entities of a study, as the rest of Perseus sees them: validated, complete, immutable."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Model:
    """A torchvision CNN, its weights, precision and SLA.

    `input_size` is in pixels; None stands for that of the weights. `images` are files, none stands
    for seeded random images.
    """

    name: str
    architecture: str
    weights: str
    input_size: int | None
    images: tuple[str, ...]
    precision: str
    sla_percentile: float
    sla_ms: float


@dataclass(frozen=True)
class Price:
    """What a server costs in USD per hour, and the row of the price table it was read from."""

    instance: str
    region: str
    on_demand_usd_per_hour: float
    spot_usd_per_hour: float | None
    source: str


@dataclass(frozen=True)
class HeaderSpec:
    """A header of every call: `prefix` and the value of the environment variable `env`."""

    name: str
    env: str
    prefix: str


@dataclass(frozen=True)
class Remote:
    """A server that runs elsewhere: addresses as host:port, and how it is spoken to.

    `tls` is "none", "system" or a file of certificates. `client_cores` are of the host that
    measures.
    """

    host: str
    grpc: str
    http: str
    metrics: str
    tls: str
    headers: tuple[HeaderSpec, ...]
    foreign_models: str
    client_cores: int

    @property
    def slot(self) -> str:
        """The name, as Snakemake's resource, of what one cell at a time may use."""
        return "remote_" + re.sub(r"[^A-Za-z0-9]", "_", self.host)


@dataclass(frozen=True)
class Server:
    """Hardware, launcher and runtime; `price` says which cloud instance it stands for.

    `gpus` are none for a CPU server. `image` is that of a container, None if the server is none.
    `remote` is None for a server that is started here.
    """

    name: str
    device: str
    launcher: str
    runtime: str
    cores: int
    price: Price
    image: str | None
    gpus: tuple[int, ...] = ()
    remote: Remote | None = None

    @property
    def gpus_here(self) -> tuple[int, ...]:
        """Those that this host must have."""
        return () if self.remote else self.gpus

    @property
    def served_gpus(self) -> tuple[int, ...]:
        """As the server itself numbers them: from 0 on when it was given them here."""
        return self.gpus if self.remote else tuple(range(len(self.gpus)))


@dataclass(frozen=True)
class Tenant:
    """One model as it is served in a scenario. `max_queue_delay_us` None: no dynamic batching."""

    name: str
    model: str
    instances: int
    max_batch_size: int
    request_batch_size: int
    max_queue_delay_us: int | None
    preferred_batch_sizes: tuple[int, ...]
    priority: int | None
    intra_op_threads: int


@dataclass(frozen=True)
class ClientSpec:
    """How requests reach the server. `processes` per tenant; None: by the cores there are."""

    protocol: str
    shared_memory: bool
    processes: int | None


@dataclass(frozen=True)
class LoadLineSpec:
    """A load line in units of dedicated peaks.

    `kind` is "dedicated" (one tenant alone), "mix" (all tenants rise together in the ratio of
    `weights`) or "hold" (tenant `held` stays at `held_percent` % of its dedicated peak, the others
    rise). A "concurrency" is no line but a closed loop: in turn, so many requests of each tenant
    are in flight. `name` is its part of a cell's name.
    """

    kind: str
    name: str
    weights: tuple[int, ...] = ()
    held: str = ""
    held_percent: int = 0
    concurrencies: tuple[int, ...] = ()

    @classmethod
    def mix(cls, weights: Sequence[int]) -> LoadLineSpec:
        """All tenants rise together; [2, 2] is the same line as [1, 1]."""
        divisor = math.gcd(*weights) or 1
        reduced = tuple(weight // divisor for weight in weights)
        return cls("mix", "mix-" + "-".join(map(str, reduced)), reduced)

    @classmethod
    def hold(cls, held: str, percent: int) -> LoadLineSpec:
        """Tenant `held` stays at `percent` % of its dedicated peak, the others rise."""
        return cls("hold", f"hold-{held}-{percent}", (), held, percent)

    @classmethod
    def concurrency(cls, levels: Sequence[int]) -> LoadLineSpec:
        """A sweep of closed loops."""
        return cls("concurrency", "concurrency", concurrencies=tuple(sorted(levels)))


DEDICATED = LoadLineSpec("dedicated", "peak")


@dataclass(frozen=True)
class Scenario:
    """One server and its tenants: exactly one Triton model repository."""

    name: str
    server: Server
    tenants: tuple[Tenant, ...]
    lines: tuple[LoadLineSpec, ...]

    @property
    def id(self) -> str:
        return f"{self.server.name}.{self.name}"


@dataclass(frozen=True)
class Cell:
    """One unit of measurement: scenario x experiment x repeat."""

    scenario: Scenario
    line: LoadLineSpec
    repeat: int

    @property
    def id(self) -> str:
        return f"{self.scenario.id}.{self.line.name}.r{self.repeat}"


@dataclass(frozen=True)
class Study:
    """One configuration: the grid of what is to be measured, and how."""

    name: str
    seed: int
    models: tuple[Model, ...]
    scenarios: tuple[Scenario, ...]
    precision: str
    repeats: int
    arrivals: str
    arrivals_cv: float
    client: ClientSpec
    arrivals_trace: str | None
    pricing: tuple[str, ...]
    figure_style: tuple[tuple[str, float | str], ...]

    @cached_property
    def cells(self) -> Mapping[str, Cell]:
        """All cells by their id, dedicated scenarios first."""
        return {
            cell.id: cell
            for scenario in self.scenarios
            for line in scenario.lines
            for cell in (Cell(scenario, line, r) for r in range(1, self.repeats + 1))
        }


def is_weights_file(weights: str) -> bool:
    """Whether a model's `weights` name a file rather than a choice of torchvision's."""
    return weights != "random" and not re.fullmatch(r"[A-Z][A-Z0-9_]*", weights)
