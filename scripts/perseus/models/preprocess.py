"""Convert images into tensors as torchvision does, using only Pillow and NumPy.

Repositories also contain this file as the model.py of a Triton model. Triton's Python backend runs
this model before the network of a tenant with `preprocessing: server`. Therefore this file imports
no module of Perseus. The client and the server do the same work.
"""

from __future__ import annotations

import ctypes
import io
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

PARAMETER = "preprocessing"
"""Name of the Triton model's parameter that contains the `Preprocessing` as JSON."""


@dataclass(frozen=True)
class Preprocessing:
    """Preprocessing of a network: resize, crop and normalisation.

    The filter `resample` of Pillow resizes the short side of an image to `resize_px`, and a centre
    crop keeps `crop_px` x `crop_px` pixels. With `normalises`, the colours (0..1) are normalised by
    the `mean` and `std` of red, green and blue. Otherwise the network takes pixels.
    """

    resize_px: int
    crop_px: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    resample: str
    normalises: bool = True

    def tensor(self, picture: NDArray[np.uint8]) -> NDArray[np.float32] | NDArray[np.uint8]:
        """Return the input of the network, shape (3, crop_px, crop_px), from the n bytes of a PNG
        or JPEG file.

        Zeros may follow the file. Raises OSError (which includes Pillow's errors), SyntaxError or
        ValueError for other bytes.
        """
        with Image.open(io.BytesIO(picture.data), formats=("PNG", "JPEG")) as file:
            image = file.convert("RGB")
        # torchvision rounds in the same way
        short, px = min(image.size), self.crop_px
        width, height = (int(self.resize_px * side / short) for side in image.size)
        image = image.resize((width, height), Image.Resampling[self.resample])
        left, top = round((width - px) / 2.0), round((height - px) / 2.0)
        cut = np.asarray(image.crop((left, top, left + px, top + px)))
        if not self.normalises:
            return np.ascontiguousarray(cut.transpose(2, 0, 1))
        scale = 1 / (255 * np.asarray(self.std, np.float32))
        offset = -np.divide(self.mean, self.std, dtype=np.float32)
        tensor: NDArray[np.float32] = np.multiply(
            cut.transpose(2, 0, 1), scale[:, None, None], order="C", dtype=np.float32
        )
        tensor += offset[:, None, None]
        return tensor


class TritonPythonModel:
    """The Triton model. It converts rows of bytes, one row per image, into one tensor per image."""

    def initialize(self, args: dict[str, str]) -> None:
        parameters = json.loads(args["model_config"])["parameters"]
        self.preprocessing = Preprocessing(**json.loads(parameters[PARAMETER]["string_value"]))

    def execute(self, requests: list[Any]) -> list[Any]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        import triton_python_backend_utils as pb_utils  # this module exists only inside Triton

        try:
            pictures = np.from_dlpack(pb_utils.get_input_tensor_by_name(request, "input"))
            tensors = [self.preprocessing.tensor(picture) for picture in pictures]
            batch: NDArray[Any] = np.stack(tensors)
        except Exception as failure:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(f"preprocess: {failure}"))
        # This code repeats backends/perseus_tensors.py, which NVIDIA's containers do not have.
        capsule = batch.__dlpack__()
        ctypes.pythonapi.PyCapsule_SetDestructor(ctypes.py_object(capsule), None)
        return pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack("output", capsule)])
