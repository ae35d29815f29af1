"""Define the task: build one TensorRT plan."""

from __future__ import annotations

from perseus.study.base import Part


class TensorRtTask(Part):
    """A tenant on one server, for which the plan is built.

    `image` is the image of the container that serves the plan. Without `dynamic_batching`, each
    batch is the content of one request.
    """

    server: str
    image: str | None
    gpus: tuple[int, ...]
    precision: str
    max_batch_size: int
    request_batch_size: int
    dynamic_batching: bool
    preferred_batch_sizes: tuple[int, ...]
