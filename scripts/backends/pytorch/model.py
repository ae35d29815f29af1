"""Triton python-based backend that runs 1/model.pt2, a program of torch.export, with PyTorch.

It reads the parameters `captured_batch_sizes` (such as "1,2,4,8"; batches are filled up to the
next of them, and on a GPU each is a CUDA graph with buffers of its own), `precision` ("fp16":
weights and arithmetic; inputs and outputs stay fp32) and `intra_op_thread_count`. The requests of
one call are computed as one batch.

Tensors come and go by DLPack, so that any version of NumPy will do, or none. They lie in CPU
memory: Triton has them there, and would copy those of a GPU anyway.
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

WARM_UP = 3  # runs before a capture: libraries choose their kernels and allocate in them
# Members of a program without pickled ones: the graph, the weights and constants as raw tensors.
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
        # fp32 means fp32: its products would be rounded to 10 bits by TF32.
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True  # every size is met before it is measured
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
    """The module of a program, on the CPU; nothing in the file is unpickled.

    Raises TritonModelException for a file whose loading would unpickle something.
    """
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = member.filename.partition("/")[2]
            # Inputs that the program was traced with: ours have none.
            plain = PLAIN.fullmatch(name) or (member.file_size == 0 and name.endswith(".pt"))
            if not plain or (name.endswith("_config.json") and _pickles(archive.read(member))):
                raise pb_utils.TritonModelException(
                    f"{path} has a part that would be unpickled, which can run any code:"
                    f" {member.filename}. Export the model again"
                )
    return torch.export.load(path).module()


def _pickles(config: bytes) -> bool:
    """Whether the description of weights or constants names a pickled one."""
    return any(entry.get("use_pickle") for entry in json.loads(config)["config"].values())


def _device(args: dict[str, str]) -> torch.device:
    if args["model_instance_kind"] != "GPU":
        return torch.device("cpu")
    number = int(args["model_instance_device_id"])
    if not torch.cuda.is_available() or number >= torch.cuda.device_count():
        raise pb_utils.TritonModelException(
            f"PyTorch {torch.__version__} sees {torch.cuda.device_count()} GPUs, and this instance"
            f" is to run on GPU {number}: install a CUDA build of torch that the driver supports,"
            " or look at CUDA_VISIBLE_DEVICES"
        )
    torch.cuda.set_device(number)
    return torch.device("cuda", number)


def _compute(module: torch.nn.Module, half: bool) -> Callable[[Tensor], Tensor]:
    """The network from fp32 to fp32."""
    if not half:
        return module
    module.half()
    return lambda images: module(images.half()).float()


def _plain(
    compute: Callable[[Tensor], Tensor], device: torch.device
) -> Callable[[Sequence[Tensor]], Tensor]:
    """Batches of the size that they have."""
    return lambda inputs: compute(_joined(inputs).to(device)).cpu()


def _joined(inputs: Sequence[Tensor]) -> Tensor:
    return inputs[0] if len(inputs) == 1 else torch.cat(tuple(inputs))


def _padded(
    compute: Callable[[Tensor], Tensor],
    sizes: Iterable[int],
    shape: Sequence[int],
    device: torch.device,
) -> Callable[[Sequence[Tensor]], Tensor]:
    """Batches filled up to the next of `sizes`, with the rest of earlier ones: no row of a network
    depends on another."""
    # One pool, the largest first: the others' graphs then fit into the memory that its graph has.
    # They never run at the same time, and answers are fetched before the next one runs.
    pool = torch.cuda.graph_pool_handle() if device.type == "cuda" else None
    with torch.inference_mode():
        batches = {size: Batch(compute, size, shape, device, pool) for size in sorted(sizes)[::-1]}

    def run(inputs: Sequence[Tensor]) -> Tensor:
        count = sum(map(len, inputs))
        fitting = min(size for size in batches if size >= count)
        return batches[fitting](inputs)[:count]

    return run


class Batch:
    """A network for one batch size: a buffer for its input and, on a GPU, its CUDA graph."""

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
        """The answers, in CPU memory; those of rows that no input fills mean nothing."""
        start = 0
        for each in inputs:
            self._input[start : start + len(each)].copy_(each)
            start += len(each)
        if self._replay is None:
            return self._compute(self._input)
        self._replay()
        return self._answers.cpu()  # waits for the graph

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
