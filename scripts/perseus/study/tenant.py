"""A tenant: one model as it is served in a scenario."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from perseus.study.base import Name, Part, Text, Whole
from perseus.study.model import Precision
from perseus.study.triton_models import PreprocessedBy, steps

BatchSize = Annotated[Whole, Field(ge=1)]
Instances = Annotated[Whole, Field(ge=1, le=64)]
LargestBatch = Annotated[Whole, Field(ge=1, le=1024)]
QueueDelay = Annotated[Whole, Field(ge=0, le=10_000_000)]
Threads = Annotated[Whole, Field(ge=1, le=256)]


class DynamicBatching(Part):
    """Triton joins waiting requests into batches."""

    max_queue_delay_us: QueueDelay = Field(
        default=0, description="How long a request may wait for further requests, in microseconds."
    )
    preferred_batch_sizes: tuple[BatchSize, ...] = Field(
        default=(), description="Batch sizes that are passed to the network without waiting."
    )


class Tenant(Part):
    """A model as it is served. Its name stands for the same settings in the whole study."""

    model: Text = Field(description="The name of a model.", examples=["resnet50"])
    name: Name = Field(
        default_factory=lambda given: given["model"],
        description="The name of the tenant. Default, the model's.",
    )
    precision: Precision | None = Field(
        default=None, description="The numeric precision of its network. Default, the model's."
    )
    instances: Instances = Field(
        default=1,
        description=(
            "Number of instances of the network that serve in parallel (Triton's instance group);"
            " for a GPU server, on each of its GPUs."
        ),
    )
    max_batch_size: LargestBatch = Field(
        default=8, description="The largest batch that the server accepts or forms."
    )
    request_batch_size: Annotated[Whole, Field(ge=1, le=1024)] = Field(
        default=1,
        description="Images in each request, at most max_batch_size. Rates stay requests/s; costs"
        " are those of an image.",
    )
    dynamic_batching: DynamicBatching | None = Field(
        default=None,
        description="Whether Triton joins waiting requests into batches. Default, it does not.",
    )
    priority: Annotated[Whole, Field(ge=1, le=100)] | None = Field(
        default=None,
        description="Share of turns on the server's cores among the tenants that have one (Triton's"
        " rate limiter): 1 is served twice as often as 2.",
    )
    intra_op_threads: Threads | None = Field(
        default=None,
        description="Threads of one inference; with a priority, at most the server's cores."
        " Default, the server's cores.",
    )
    preprocessing: PreprocessedBy | None = Field(
        default=None,
        description=(
            "Where images are converted into tensors: `server` sends them as files, which the"
            " server decodes, resizes and normalises before the network (of torchvision's models)."
            " `client` converts them before the load, sends the tensors, and measures the CPU time"
            " of the conversion. The images are those of the model's `images`, or seeded random"
            " ones, JPEG of 512 x 384 pixels. Default, requests are tensors of unspecified origin."
        ),
    )

    @property
    def steps(self) -> tuple[str, ...]:
        """Triton models that a request passes, if they are several."""
        return steps(self.name, self.preprocessing)

    @property
    def network(self) -> str:
        """The Triton model of its network."""
        return self.steps[-1] if self.steps else self.name
