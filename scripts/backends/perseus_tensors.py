"""Requests and responses as NumPy arrays, for backends that run in Triton's Python stub.

The stub finds this module beside `triton_python_backend_utils`. It was built against NumPy 1: with
NumPy 2, its `Tensor(name, array)` and `as_numpy()` lose the values. DLPack keeps them.
"""

import ctypes
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils


def tensor(name: str, array: np.ndarray) -> Any:
    """A tensor of Triton's with the values of an array, whose memory it shares if it can.

    Raises RuntimeError or BufferError for types that DLPack does not know: strings, bfloat16.
    """
    array = np.require(array, requirements=("C", "W"))
    # Those of a contiguous array; NumPy has others for dimensions of 0 or 1, and the stub no use.
    strides = np.cumprod([array.itemsize, *array.shape[:0:-1]])[: array.ndim][::-1]
    capsule = np.ndarray(array.shape, array.dtype, array, strides=strides).__dlpack__()
    # From here on the tensor owns what the capsule holds. The stub marks that in a way of its own,
    # which NumPy, about to destroy the capsule, takes for an error.
    ctypes.pythonapi.PyCapsule_SetDestructor(ctypes.py_object(capsule), None)
    return pb_utils.Tensor.from_dlpack(name, capsule)


def inputs_of(request: Any, names: list[str]) -> dict[str, np.ndarray]:
    """The inputs of a request by name, where they lie in shared memory."""
    return {
        name: np.from_dlpack(pb_utils.get_input_tensor_by_name(request, name)) for name in names
    }


def joined(given: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The inputs of all requests as one batch; those of a single request unchanged."""
    if len(given) == 1:
        return given[0]
    return {name: np.concatenate([each[name] for each in given]) for name in given[0]}


def responses(given: list[dict[str, np.ndarray]], answers: dict[str, np.ndarray]) -> list[Any]:
    """The response to each request: its rows of the answers; all of them for a single request."""
    if len(given) == 1:
        return [_response(answers)]
    made, start = [], 0
    for each in given:
        end = start + len(next(iter(each.values())))
        made.append(_response({name: rows[start:end] for name, rows in answers.items()}))
        start = end
    return made


def _response(answers: dict[str, np.ndarray]) -> Any:
    return pb_utils.InferenceResponse([tensor(*answer) for answer in answers.items()])
