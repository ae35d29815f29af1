"""Define the task of a job that measures one cell."""

from __future__ import annotations

from typing import Annotated

from pydantic import SerializeAsAny

from perseus.study.base import Part
from perseus.study.experiments import RunOfKind
from perseus.study.experiments.base import ExperimentRun
from perseus.study.presets import SearchSettings
from perseus.study.remote import Remote
from perseus.study.sla import Sla
from perseus.study.tasks.own_examples import OwnExamples
from perseus.study.traces import TraceOf
from perseus.study.triton_models import PreprocessedBy, steps


class MeasuredArrivals(Part):
    """Arrival process of a cell. `cv` is the coefficient of variation of gamma-distributed gaps
    between arrivals."""

    process: str
    cv: float


class MeasuredClient(Part):
    """Settings of the client of a cell.

    `processes` is the number of client processes per tenant. If `processes` is None, each tenant
    gets the number of client cores divided by the number of tenants, rounded down, but at least
    one.
    """

    protocol: str
    shared_memory: bool
    processes: int | None


class MeasuredServer(Part):
    """The server of a cell. `gpus` contains the numbers of this host's GPUs that the server uses,
    and is empty for a CPU server or a remote server."""

    name: str
    device: str
    launcher: str
    image: str | None
    runtime: str
    cores: int
    gpus: tuple[int, ...]
    remote: Remote | None


class ServedModel(Part):
    """A model that the server already has, with its name on the server.

    `shape` contains the sizes of inputs with variable sizes, by the name of the input. `examples`
    defines the content of the requests. If `deterministic` is false, the model may give different
    responses to the same request.
    """

    name: str
    shape: dict[str, tuple[int, ...]]
    deterministic: bool = True
    examples: OwnExamples = OwnExamples()


class MeasuredTenant(Part):
    """A tenant of a cell, with the properties that the client or the record of the cell needs.

    `served_model` is None for a model that Perseus loads into the server. For a model that the
    server already has, `max_batch_size`, `dynamic_batching` and `precision` are None, since only
    the server knows these settings. `preprocessing` says who converts image files into tensors
    ("client" or "server"). If `preprocessing` is None, the client sends tensors, and Perseus
    measures no conversion. `labelled_images` is the number of images with which the cell measures
    the accuracy of the model.
    """

    name: str
    model: str
    served_model: ServedModel | None = None
    max_batch_size: int | None
    request_batch_size: int
    dynamic_batching: bool | None
    precision: str | None
    priority: int | None
    preprocessing: PreprocessedBy | None = None
    labelled_images: int = 0
    sla: Sla

    @property
    def steps(self) -> tuple[str, ...]:
        """Names of the two Triton models of a tenant whose images the server preprocesses: first
        the preprocessing, then the network. For other tenants, the result is empty."""
        return steps(self.name, self.preprocessing)


class MeasureTask(Part):
    """Settings of the measurement of one cell (one repeat of one run of a scenario).

    `run` states what the experiment measures. `trace` is the trace of the arrival process, or None.
    A setting of the arrival process or the client that the experiment does not use has its default
    value. Therefore, an edit of this setting does not repeat the measurement.
    """

    study: str
    cell: str
    scenario: str
    repeat: int
    seed: int
    run: Annotated[SerializeAsAny[ExperimentRun], RunOfKind]
    server: MeasuredServer
    tenants: tuple[MeasuredTenant, ...]
    preset: str
    search: SearchSettings
    arrivals: MeasuredArrivals
    trace: TraceOf | None
    client: MeasuredClient

    @property
    def tenant_names(self) -> list[str]:
        return [tenant.name for tenant in self.tenants]

    @property
    def deployed(self) -> list[str]:
        """Names of the tenants whose models Perseus loads into the server."""
        return [tenant.name for tenant in self.tenants if tenant.served_model is None]

    @property
    def slas(self) -> list[Sla]:
        return [tenant.sla for tenant in self.tenants]
