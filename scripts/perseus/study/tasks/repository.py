"""Define the task: write the Triton repository of a scenario."""

from __future__ import annotations

from perseus.study.base import Part


class ServedEnsemble(Part):
    """The Triton ensemble of a tenant whose clients send image files: the preprocessing, then the
    network.

    `tenant` is the name of the ensemble in Triton. `preprocess` and `network` are the names of the
    two Triton models in the ensemble. `max_batch_size` is the largest number of images in a batch
    of the network. `processes` is the number of parallel preprocessing processes. Each process
    converts one image at a time.
    """

    tenant: str
    preprocess: str
    network: str
    max_batch_size: int
    processes: int


class ServedTenant(Part):
    """A Triton model in the repository of one scenario.

    `name` is the name in Triton, of letters, digits, '_', '-' and '~'; the network of an ensemble
    has the suffix ".network". `model` is the name of the model in the study, for error messages
    only. `runtime` executes the model in `precision`; `study.runtimes` has the precisions of each
    runtime. The inputs and outputs of the model are always fp32. `model_file` is the name of the
    file that the runtime loads. `gpus` has the indices of the GPUs, as the server numbers the GPUs;
    empty for a CPU server. `instances` is the number of instances that may execute at the same time
    (on a GPU server, on each GPU). `request_batch_size` is the number of examples, such as images,
    in each request. `max_queue_delay_us` is the time in microseconds that a request may wait for
    other requests of its batch; None switches dynamic batching off. Triton executes a batch of one
    of the `preferred_batch_sizes` without further waiting. Tenants with a `priority` take turns on
    the cores: an instance of priority 1 gets twice as many turns as an instance of priority 2.
    `intra_op_threads` is the number of threads of each instance. `ensemble` is the Triton ensemble
    that contains this model, or None.
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
    """Settings of the Triton repository of a scenario. The repository has the models of `tenants`:
    all tenants whose models Perseus deploys.

    In a survey (the experiment `catalogue`), if a model cannot be exported, the table `catalogue`
    says why.
    """

    tenants: tuple[ServedTenant, ...]
    is_survey: bool = False
