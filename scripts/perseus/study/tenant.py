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
    """Settings of dynamic batching. With dynamic batching, Triton joins waiting requests into
    batches."""

    max_queue_delay_us: QueueDelay = Field(
        default=0,
        description=(
            "The longest time, in microseconds, that Triton holds back a request to wait for other"
            " requests of the same batch."
        ),
    )
    preferred_batch_sizes: tuple[BatchSize, ...] = Field(
        default=(),
        description=(
            "Batch sizes in images. As soon as a batch has one of these sizes, Triton executes the"
            " batch, even if `max_queue_delay_us` has not yet passed."
        ),
    )


class Tenant(Part):
    """A model in a scenario, and the settings with which Triton serves this model. Tenants with the
    same name in several scenarios must have the same settings."""

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
            "Number of copies of the network that Triton executes in parallel (its instance group)."
            " On a GPU server, each GPU gets this number of copies."
        ),
    )
    max_batch_size: LargestBatch = Field(
        default=8, description="The largest number of images in one batch."
    )
    request_batch_size: Annotated[Whole, Field(ge=1, le=1024)] = Field(
        default=1,
        description=(
            "Number of images in each request, at most `max_batch_size`. All rates of the tenant"
            " are in requests/s, but its costs are per image."
        ),
    )
    dynamic_batching: DynamicBatching | None = Field(
        default=None,
        description=(
            "Settings of dynamic batching. With dynamic batching, Triton joins waiting requests"
            " into batches. Default: no dynamic batching."
        ),
    )
    priority: Annotated[Whole, Field(ge=1, le=100)] | None = Field(
        default=None,
        description=(
            "Priority of the tenant in the rate limiter of Triton; 1 is the highest priority. The"
            " tenants with a priority take turns on the cores of the server. A tenant with priority"
            " 1 gets twice as many turns as a tenant with priority 2. Default: no priority. A"
            " tenant without a priority does not wait for a turn."
        ),
    )
    intra_op_threads: Threads | None = Field(
        default=None,
        description=(
            "Number of threads that compute one inference. Default: the number of cores of the"
            " server. If the tenant has a `priority`, the number must not be larger than this"
            " default."
        ),
    )
    preprocessing: PreprocessedBy | None = Field(
        default=None,
        description=(
            "Who converts image files into tensors; only for classification models of torchvision."
            " `server`: the client sends image files, and the server decodes, resizes and"
            " normalises the images. `client`: before the client sends requests, it converts all"
            " image files and measures the CPU time of this conversion. The client then sends"
            " tensors. The image files are the `images` of the model, or seeded random JPEG images"
            " of 512 x 384 pixels. Default: the client sends tensors, and Perseus measures no"
            " conversion."
        ),
    )

    @property
    def steps(self) -> tuple[str, ...]:
        """Names of the two Triton models of a tenant whose images the server preprocesses: first
        the preprocessing, then the network. For other tenants, the result is empty."""
        return steps(self.name, self.preprocessing)

    @property
    def network(self) -> str:
        """Name of the Triton model that contains the network of the tenant."""
        return self.steps[-1] if self.steps else self.name
