"""The task of writing one tenant of a scenario's Triton repository."""

from __future__ import annotations

from perseus.study.base import Part


class ServedTenant(Part):
    """One model as it is served in one scenario.

    name: the name Triton serves it under, of letters, digits, '_', '-' and '~'; then ".network"
        where it is a step of an ensemble.
    model: the name of the model in the study; not written, it explains error messages.
    runtime, precision: what executes it, and how; `study.runtimes` knows which it can. Inputs and
        outputs are fp32 whatever the precision.
    model_file: the name of the file that the runtime loads.
    gpus: as the server numbers them; none for a CPU.
    instances: copies of the model that may execute at the same time, on each of the GPUs.
    own_request_batch_size: images in each request to a user's own network, which may take batches
        of one size only; None of others.
    max_queue_delay_us: how long a request may wait for others to share its batch, in microseconds;
        None switches dynamic batching off.
    preferred_batch_sizes: batches that are sent without further waiting; needs dynamic batching.
    priority: share of the cores among tenants that have one: an instance of priority 1 gets twice
        as many turns as one of priority 2.
    intra_op_threads: threads of each instance.
    """

    name: str
    model: str
    runtime: str = "onnxruntime"
    precision: str = "fp32"
    model_file: str = "model.onnx"
    instances: int = 1
    max_batch_size: int = 8
    own_request_batch_size: int | None = None
    max_queue_delay_us: int | None = None
    preferred_batch_sizes: tuple[int, ...] = ()
    priority: int | None = None
    intra_op_threads: int = 1
    gpus: tuple[int, ...] = ()


class RepositoryTask(Part):
    """A tenant, and the names of all Triton models of its scenario."""

    tenant: ServedTenant
    siblings: tuple[str, ...]
