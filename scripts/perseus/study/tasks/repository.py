"""Define the task: write the Triton repository of a scenario."""

from __future__ import annotations

from perseus.study.base import Part


class ServedEnsemble(Part):
    """The preprocessing model of a tenant with images, and the ensemble of preprocessing and
    network.

    tenant: the name of the ensemble in Triton. preprocess, network: the names of its steps.
    max_batch_size: that of the network. processes: number of parallel processes for preprocessing,
    with one image each.
    """

    tenant: str
    preprocess: str
    network: str
    max_batch_size: int
    processes: int


class ServedTenant(Part):
    """A model as it is served in one scenario.

    name: the name Triton serves it under, of letters, digits, '_', '-' and '~'; then ".network"
    where it is a step of an ensemble. model: the name of the model in the study; not written, it
    explains error messages. runtime, precision: what executes it, and how; `study.runtimes`
    knows which it can. Inputs and outputs are fp32 at every precision. model_file: the name of
    the file that the runtime loads. gpus: as the server numbers them; none for a CPU. instances:
    copies of the model that may execute at the same time, on each of the GPUs.
    request_batch_size: examples in each request, such as images. max_queue_delay_us: how long a
    request may wait for others to share its batch, in microseconds; None switches dynamic
    batching off. preferred_batch_sizes: batches that are sent without further waiting; needs
    dynamic batching. priority: share of the cores among tenants that have one: an instance of
    priority 1 gets twice as many turns as one of priority 2. intra_op_threads: threads of each
    instance. ensemble: what it is a step of; None of others.
    """

    name: str
    model: str
    runtime: str = "onnxruntime"
    precision: str = "fp32"
    model_file: str = "model.onnx"
    instances: int = 1
    max_batch_size: int = 8
    request_batch_size: int = 1
    max_queue_delay_us: int | None = None
    preferred_batch_sizes: tuple[int, ...] = ()
    priority: int | None = None
    intra_op_threads: int = 1
    gpus: tuple[int, ...] = ()
    ensemble: ServedEnsemble | None = None


class RepositoryTask(Part):
    """All tenants of a scenario whose models are deployed.

    In a survey, a model that could not be exported becomes a row with the reason.
    """

    tenants: tuple[ServedTenant, ...]
    is_survey: bool = False
