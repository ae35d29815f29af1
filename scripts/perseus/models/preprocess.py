"""Convert images into tensors as torchvision does, using only Pillow and NumPy.

Both the client and the server run this file, so both preprocess images in the same way. For a
tenant with `preprocessing: server`, this file is the model.py of a Triton model, which Triton's
Python backend runs before the network. This file imports no module of Perseus, because the
containers of NVIDIA do not contain Perseus.
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
"""Name of the parameter in config.pbtxt that contains the `Preprocessing` as JSON."""


@dataclass(frozen=True)
class Preprocessing:
    """Preprocessing of images for a network: resize, crop and normalisation.

    The filter `resample` of Pillow resizes the short side of an image to `resize_px`, and a centre
    crop keeps `crop_px` x `crop_px` pixels. If `normalises` is true, each colour from 0 to 1
    becomes (colour - `mean`) / `std`. `mean` and `std` have three numbers: for red, green and blue.
    If `normalises` is false, the colours stay whole numbers from 0 to 255.
    """

    resize_px: int
    crop_px: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    resample: str
    normalises: bool = True

    def tensor(self, picture: NDArray[np.uint8]) -> NDArray[np.float32] | NDArray[np.uint8]:
        """Convert a PNG or JPEG file into an input of the network, shape (3, crop_px, crop_px).

        `picture` has the bytes of the file, shape (n,). Zeros may follow the bytes of the file.
        Raises OSError, SyntaxError or ValueError if Pillow cannot read the image.
        """
        with Image.open(io.BytesIO(picture.data), formats=("PNG", "JPEG")) as file:
            image = file.convert("RGB")
        # Round the sizes as torchvision does.
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
    """The Triton model, which converts each row of bytes (one image file) into one tensor."""

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
        # This code repeats backends/perseus_tensors.py, which the containers of NVIDIA do not have.
        capsule = batch.__dlpack__()
        ctypes.pythonapi.PyCapsule_SetDestructor(ctypes.py_object(capsule), None)
        return pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack("output", capsule)])
