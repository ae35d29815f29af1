"""Define the task of the job that writes the Triton repository of a scenario: the folder with the
models that Triton loads."""

from __future__ import annotations

from perseus.study.base import Part


class ServedEnsemble(Part):
    """The Triton ensemble of a tenant whose clients send image files.

    Triton runs two models one after the other: the preprocessing, then the network. `tenant` is the
    name of the ensemble in Triton. `preprocess` and `network` are the names of the two models.
    `max_batch_size` is the largest number of images in a batch of the network. `processes` is the
    number of processes that preprocess images in parallel. Each process converts one image at a
    time.
    """

    tenant: str
    preprocess: str
    network: str
    max_batch_size: int
    processes: int


class ServedTenant(Part):
    """A Triton model in the repository of one scenario.

    - `name`: name of the model in Triton. It consists of letters, digits, '_', '-' and '~'. The
      network of an ensemble has the suffix ".network".
    - `model`: name of the model in the study, for error messages only.
    - `runtime`, `precision`: the runtime, and the numeric precision inside the network. The inputs
      and outputs are always fp32.
    - `model_file`: name of the file that the runtime loads.
    - `gpus`: numbers that the server gives to its GPUs; empty for a CPU server.
    - `instances`: number of copies of the network that Triton executes in parallel (on a GPU
      server, on each GPU).
    - `request_batch_size`: number of examples, such as images, in each request.
    - `max_queue_delay_us`: longest time in microseconds that a request waits for other requests of
      the same batch, or None without dynamic batching.
    - `preferred_batch_sizes`: as soon as a batch has one of these sizes, Triton executes the batch.
    - `priority`: priority in the rate limiter of Triton. Models with a priority take turns on the
      cores. An instance of priority 1 gets twice as many turns as an instance of priority 2.
    - `intra_op_threads`: number of threads of each instance.
    - `ensemble`: the Triton ensemble that contains this model, or None.
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
    """Settings of the Triton repository of a scenario.

    `tenants` contains all tenants whose models Perseus loads into the server. `is_survey` is true
    if only the experiment `catalogue` measures the scenario. If the export of a model fails, the
    table `catalogue` then says why, and the study continues.
    """

    tenants: tuple[ServedTenant, ...]
    is_survey: bool = False
