"""Define the task of the job that builds the TensorRT plan of one tenant."""

from __future__ import annotations

from perseus.study.base import Part


class TensorRtTask(Part):
    """The tenant and the server for which the job builds a TensorRT plan.

    `image` is the container image of the server. Without dynamic batching, each request is a batch
    of its own, so the job optimises the plan for `request_batch_size`.
    """

    server: str
    image: str | None
    gpus: tuple[int, ...]
    precision: str
    max_batch_size: int
    request_batch_size: int
    dynamic_batching: bool
    preferred_batch_sizes: tuple[int, ...]
