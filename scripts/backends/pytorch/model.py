"""Triton backend in Python that runs 1/model.pt2, a program of torch.export, with PyTorch.

If Triton passes several requests at once, the backend runs these requests as one batch. The backend
reads three parameters:

- `captured_batch_sizes` is a list of batch sizes such as "1,2,4,8". The backend pads each batch to
  the next larger size in the list. On a GPU, it captures a CUDA graph for each size in the list.
- If `precision` is "fp16", weights and arithmetic are fp16; inputs and outputs stay fp32.
- `intra_op_thread_count` is the number of CPU threads of each model instance.

The backend exchanges tensors with Triton by DLPack, so it needs no particular version of NumPy. The
tensors are in CPU memory, because Triton would copy tensors from GPU memory to CPU memory anyway.
"""

import json
import re
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
import triton_python_backend_utils as pb_utils
from torch import Tensor

WARM_UP = 3  # first runs, without a graph: libraries choose kernels and allocate memory
# Members of the archive that torch does not unpickle: the graph, and weights and constants as raw
# tensors.
PLAIN = re.compile(
    r"models/model\.json|data/(weights|constants)/model_(weights|constants)_config\.json"
    r"|data/weights/weight_\d+|data/constants/tensor_\d+"
    r"|archive_(format|version)|version|byteorder|\.(data|format)/\w+"
)


class TritonPythonModel:
    """One instance of one model: one process, on one GPU or on the CPU."""

    def initialize(self, args: dict[str, str]) -> None:
        config = json.loads(args["model_config"])
        parameters = {k: v["string_value"] for k, v in config.get("parameters", {}).items()}
        device = _device(args)
        torch.set_num_threads(int(parameters.get("intra_op_thread_count", 1)))
        # Compute in true fp32: TF32 would round the factors of products to 10 bits.
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True  # each batch size runs before a measurement
        filename = config.get("default_model_filename") or "model.pt2"
        path = Path(args["model_repository"], args["model_version"], filename)
        self.input = config["input"][0]["name"]
        self.output = config["output"][0]["name"]
        half = parameters.get("precision") == "fp16"
        compute = _compute(load(path).to(device), half)
        sizes = [int(n) for n in parameters.get("captured_batch_sizes", "").split(",") if n]
        shape = [int(n) for n in config["input"][0]["dims"]]
        self.run = _padded(compute, sizes, shape, device) if sizes else _plain(compute, device)

    def execute(self, requests: list[Any]) -> list[Any]:
        try:
            inputs = [
                torch.from_dlpack(pb_utils.get_input_tensor_by_name(request, self.input))
                for request in requests
            ]
            with torch.inference_mode():
                answers = self.run(inputs)
        except Exception as failure:
            error = pb_utils.TritonError(f"pytorch: {failure}")
            return [pb_utils.InferenceResponse(error=error) for _ in requests]
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack(self.output, part)])
            for part in answers.split([len(each) for each in inputs])
        ]

    def finalize(self) -> None:
        self.run = None


def load(path: Path) -> torch.nn.Module:
    """Load a program into CPU memory, and return its PyTorch module.

    Raises TritonModelException if torch would unpickle any part of the file, because unpickling can
    run malicious code.
    """
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = member.filename.partition("/")[2]
            # Perseus leaves out the example inputs of the export, so their .pt member is empty.
            plain = PLAIN.fullmatch(name) or (member.file_size == 0 and name.endswith(".pt"))
            if not plain or (name.endswith("_config.json") and _pickles(archive.read(member))):
                raise pb_utils.TritonModelException(
                    f"{path} contains {member.filename}, which PyTorch would unpickle. Unpickling"
                    " can run any code. Export the model again"
                )
    return torch.export.load(path).module()


def _pickles(config: bytes) -> bool:
    """Return whether a list of weights or constants (JSON) has an entry that is pickled."""
    return any(entry.get("use_pickle") for entry in json.loads(config)["config"].values())


def _device(args: dict[str, str]) -> torch.device:
    if args["model_instance_kind"] != "GPU":
        return torch.device("cpu")
    number = int(args["model_instance_device_id"])
    if not torch.cuda.is_available() or number >= torch.cuda.device_count():
        raise pb_utils.TritonModelException(
            f"PyTorch {torch.__version__} sees {torch.cuda.device_count()} GPUs, but this model"
            f" instance must run on GPU {number}: install a CUDA build of torch that the driver"
            " supports, or check CUDA_VISIBLE_DEVICES"
        )
    torch.cuda.set_device(number)
    return torch.device("cuda", number)


def _compute(module: torch.nn.Module, half: bool) -> Callable[[Tensor], Tensor]:
    """Return the network as a function with fp32 input and output.

    If `half` is true, the network computes in fp16.
    """
    if not half:
        return module
    module.half()
    return lambda images: module(images.half()).float()


def _plain(
    compute: Callable[[Tensor], Tensor], device: torch.device
) -> Callable[[Sequence[Tensor]], Tensor]:
    """Return a function that runs each batch without padding."""
    return lambda inputs: compute(_joined(inputs).to(device)).cpu()


def _joined(inputs: Sequence[Tensor]) -> Tensor:
    return inputs[0] if len(inputs) == 1 else torch.cat(tuple(inputs))


def _padded(
    compute: Callable[[Tensor], Tensor],
    sizes: Iterable[int],
    shape: Sequence[int],
    device: torch.device,
) -> Callable[[Sequence[Tensor]], Tensor]:
    """Return a function that pads each batch to the next larger of `sizes` and runs the network.

    The rows of the padding contain values of earlier batches. These rows cannot affect other rows.
    """
    # All CUDA graphs share one pool of memory. The largest graph comes first, so that the other
    # graphs fit into its memory. Only one graph runs at a time, and its responses are copied before
    # the next graph runs.
    pool = torch.cuda.graph_pool_handle() if device.type == "cuda" else None
    with torch.inference_mode():
        batches = {size: Batch(compute, size, shape, device, pool) for size in sorted(sizes)[::-1]}

    def run(inputs: Sequence[Tensor]) -> Tensor:
        count = sum(map(len, inputs))
        fitting = min(size for size in batches if size >= count)
        return batches[fitting](inputs)[:count]

    return run


class Batch:
    """A network for one batch size, with a buffer for its input and, on a GPU, a CUDA graph."""

    def __init__(
        self,
        compute: Callable[[Tensor], Tensor],
        size: int,
        shape: Sequence[int],
        device: torch.device,
        pool: Any,
    ) -> None:
        self._input = torch.zeros((size, *shape), device=device)
        self._replay: Callable[[], Any] | None = None
        self._compute = compute
        if device.type == "cuda":
            self._capture(pool)

    def __call__(self, inputs: Sequence[Tensor]) -> Tensor:
        """Return the outputs in CPU memory. The outputs of the padding come last."""
        start = 0
        for each in inputs:
            self._input[start : start + len(each)].copy_(each)
            start += len(each)
        if self._replay is None:
            return self._compute(self._input)
        self._replay()
        return self._answers.cpu()  # waits until the graph has run

    def _capture(self, pool: Any) -> None:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                self._compute(self._input)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            self._answers = self._compute(self._input)
        self._replay = graph.replay
