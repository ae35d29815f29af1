"""Define a tenant: a model in a scenario, with the settings of its Triton model."""

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
        default=0,
        description=(
            "The longest time that a request may wait for further requests of its batch,"
            " in microseconds."
        ),
    )
    preferred_batch_sizes: tuple[BatchSize, ...] = Field(
        default=(),
        description=(
            "Batch sizes in images. Triton executes a batch of one of these sizes without further"
            " waiting."
        ),
    )


class Tenant(Part):
    """A model in a scenario, with the settings of its Triton model. Tenants with the same name in
    several scenarios must have the same settings."""

    model: Text = Field(description="The name of a model in `models`.", examples=["resnet50"])
    name: Name = Field(
        default_factory=lambda given: given["model"],
        description="The name of the tenant. Default: the name of the model.",
    )
    precision: Precision | None = Field(
        default=None,
        description=("The numeric precision of the network. Default: the precision of the model."),
    )
    instances: Instances = Field(
        default=1,
        description=(
            "Number of instances of the network that execute in parallel (Triton's instance"
            " group). On a GPU server, each GPU has this number of instances."
        ),
    )
    max_batch_size: LargestBatch = Field(
        default=8, description="The largest number of images in one batch."
    )
    request_batch_size: Annotated[Whole, Field(ge=1, le=1024)] = Field(
        default=1,
        description=(
            "Number of images in each request, at most `max_batch_size`. Rates count requests, but"
            " costs count images."
        ),
    )
    dynamic_batching: DynamicBatching | None = Field(
        default=None,
        description=(
            "Settings of dynamic batching: Triton joins waiting requests into batches. Default: no"
            " dynamic batching."
        ),
    )
    priority: Annotated[Whole, Field(ge=1, le=100)] | None = Field(
        default=None,
        description=(
            "Priority of the tenant in the rate limiter of Triton. The rate limiter lets the"
            " tenants with a priority execute in turn on the cores of the server. A tenant with"
            " priority 1 gets twice as many turns as a tenant with priority 2. A tenant without a"
            " priority executes at any time."
        ),
    )
    intra_op_threads: Threads | None = Field(
        default=None,
        description=(
            "Number of threads of one inference. With a `priority`, at most the number of cores of"
            " the server. Default: the number of cores of the server."
        ),
    )
    preprocessing: PreprocessedBy | None = Field(
        default=None,
        description=(
            "For classification models of torchvision: who converts image files into tensors. With"
            " `server`, the client sends image files, and the server decodes, resizes and"
            " normalises the images. With `client`, the client converts all image files before the"
            " load, measures the CPU time of the conversion, and then sends the tensors. The image"
            " files are the `images` of the model, or seeded random JPEG images of 512 x 384"
            " pixels. Default: the client sends tensors, and Perseus measures no conversion."
        ),
    )

    @property
    def steps(self) -> tuple[str, ...]:
        """Names of the Triton models through which a request passes; empty if a request passes
        through one Triton model only."""
        return steps(self.name, self.preprocessing)

    @property
    def network(self) -> str:
        """Name of the Triton model with the network of the tenant."""
        return self.steps[-1] if self.steps else self.name
